#!/usr/bin/env python3
"""Our binary with a small real language model behind llama.cpp's server, over the three wires that this server speaks.

    drive_llamacpp.py --cepa BINARY --peers FOLDER

What the model says is up to the model; what is judged is what cepa does with it, and words that the model can only have from a tool.
"""

import llamacpp
import steps
from cepa import PAUSED, Cepa, Unexpected, holds, same

TALK = "onions"


def main() -> None:
    wanted = steps.options()
    work = steps.folder(wanted, "llamacpp")
    with llamacpp.serving(work / "llamacpp.log") as port, llamacpp.wires(wanted.cepa, work, port) as wires:
        drive(**wires)


def asks_to_write(cepa: Cepa, talk: str) -> str:
    """Has the model ask for a sensitive call; returns the conversation in which it does.

    What a model as small as this one writes hangs on every word that it reads, the path of the folder among them. It may write
    on until it is cut, and what was cut does not run: then it is asked again elsewhere, in other words.
    """
    prompts = ["Write hello to the file notes.txt.", "Write the word hello to notes.txt.", "Write hi to the file notes.txt."]
    for n, prompt in enumerate(prompts):
        where = talk if n == 0 else f"{talk}-{n}"
        try:
            cepa.run(prompt, where, expect=PAUSED)
            return where
        except Unexpected:
            if n + 1 == len(prompts):
                raise
    raise AssertionError("no prompt")


def reads(cepa: Cepa, talk: str) -> None:
    """Has the model read a file; its answer holds words that it can only have from the tool: of the file, or of what stands above it."""
    answer = cepa.run("Read the file README.md.", talk)
    if not any(word in answer for word in ("Cepa", "26 bytes")):
        raise Unexpected(f"an answer with what the file says expected, found {answer!r}")


def drive(chat: Cepa, messages: Cepa, responses: Cepa) -> None:
    (chat.root / "README.md").write_text("The onion is called Cepa.\n", encoding="utf-8")

    with steps.step("chat: a real model answers"):
        holds("answer", chat.run("What is the capital of France?", TALK), "Paris")

    with steps.step("the model calls a tool, and its answer has what the tool gave"):
        reads(chat, TALK)

    with steps.step("the model asks for a sensitive call: the turn waits and the process ends"):
        talk = asks_to_write(chat, TALK)
        shown = chat.only_pause("write_file")
        same("written before the decision", (chat.root / "notes.txt").exists(), False)

    with steps.step("a new process approves: the call runs once and the model answers"):
        answer = chat.decide("approve", shown["pause_id"])
        same("content", (chat.root / "notes.txt").read_text(encoding="utf-8"), shown["args"]["content"])
        same("an answer", bool(answer.strip()), True)
        same("still waiting", chat.pending(), [])

    with steps.step("the other provider continues the conversation"):
        messages.run("Read the file README.md.", talk)
        asks_to_write(messages, talk)
        messages.decide("approve", messages.only_pause("write_file")["pause_id"])

    with steps.step("and so does the third wire"):
        reads(responses, talk)
        asks_to_write(responses, "responses")
        responses.decide("approve", responses.only_pause("write_file")["pause_id"])

    with steps.step("and back again"):
        same("an answer", bool(chat.run("What is the capital of France?", talk).strip()), True)


if __name__ == "__main__":
    main()
