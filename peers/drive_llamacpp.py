#!/usr/bin/env python3
"""Our binary with a small real language model behind llama.cpp's server, over the three wires that this server speaks.

    drive_llamacpp.py --cepa BINARY --peers FOLDER

What the model says is up to the model; what is judged is what cepa does with it, and words that the model can only have from a tool.
"""

import llamacpp
import steps
from cepa import PAUSED, Cepa, holds, same

TALK = "onions"


def main() -> None:
    wanted = steps.options()
    work = steps.folder(wanted, "llamacpp")
    with llamacpp.serving(work / "llamacpp.log") as port, llamacpp.wires(wanted.cepa, work, port) as wires:
        drive(**wires)


def drive(chat: Cepa, messages: Cepa, responses: Cepa) -> None:
    (chat.root / "README.md").write_text("The onion is called Cepa.\n", encoding="utf-8")

    with steps.step("chat: a real model answers"):
        holds("answer", chat.run("What is the capital of France?", TALK), "Paris")

    with steps.step("the model calls a tool, and its answer has what the tool gave"):
        holds("answer", chat.run("Read the file README.md.", TALK), "Cepa")

    with steps.step("the model asks for a sensitive call: the turn waits and the process ends"):
        chat.run("Write hello to the file notes.txt.", TALK, expect=PAUSED)
        shown = chat.only_pause("write_file")
        same("written before the decision", (chat.root / "notes.txt").exists(), False)

    with steps.step("a new process approves: the call runs once and the model answers"):
        answer = chat.decide("approve", shown["pause_id"])
        same("content", (chat.root / "notes.txt").read_text(encoding="utf-8"), shown["args"]["content"])
        same("an answer", bool(answer.strip()), True)
        same("still waiting", chat.pending(), [])

    with steps.step("the other provider continues the conversation"):
        messages.run("Read the file README.md.", TALK)
        messages.run("Write hello to the file notes.txt.", TALK, expect=PAUSED)
        messages.decide("approve", messages.only_pause("write_file")["pause_id"])

    with steps.step("and so does the third wire"):
        holds("answer", responses.run("Read the file README.md.", TALK), "Cepa")
        responses.run("Write hello to the file notes.txt.", "responses", expect=PAUSED)
        responses.decide("approve", responses.only_pause("write_file")["pause_id"])

    with steps.step("and back again"):
        same("an answer", bool(chat.run("What is the capital of France?", TALK).strip()), True)


if __name__ == "__main__":
    main()
