#!/usr/bin/env python3
"""Our binary with a small real language model in long conversations full of tool calls, over the three wires of llama.cpp's server.

    drive_llamacpp_long.py --cepa BINARY --peers FOLDER

One conversation changes the wire with every turn, through every ordered pair of wires; then each wire has one of its own. Some turns
wait and are decided by a new process, one is cancelled, one is killed. After every turn the stored messages are judged, at the end also
every request that was sent.
"""

import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import time

import llamacpp
import steps
from cepa import COMPLETED, PAUSED, Cepa, Unexpected, same
from kept import Kept, judge_sent

CANCELLED, KILLED = 130, -signal.SIGKILL
#: Every wire follows every other one: chat messages, messages responses, responses chat, chat responses, responses messages, messages chat.
ROUND = ["chat", "messages", "responses", "chat", "responses", "messages"]
#: The same for all conversations, so that the server has read it when the next one begins.
SETTINGS = 'system_prompt = "You are an agent that works with the files of a folder."\nmax_batches = 4\n'
FILES = {
    "onion.txt": "The onion is called Cepa.\n",
    "garlic.txt": "The garlic is called Sativum.\n",
    "leek.txt": "The leek is called Porrum.\n",
    "chive.txt": "The chive is called Schoeno.\n",
    "shallot.txt": "The shallot is called Ascalon.\n",
}
#: How many messages the window shows of the long conversation.
SHOWN = 24


class Story:
    """One conversation, turn by turn; each turn is a step of its own and goes over the next wire."""

    def __init__(self, wires: dict[str, Cepa], order: list[str], conversation: str):
        self.wires, self.conversation = wires, conversation
        self.order = itertools.cycle(order)
        self.any = next(iter(wires.values()))
        self.kept = Kept(self.any, conversation)
        self.void: list[str] = []
        self.turns = 0
        settings = self.any.folder / "cepa" / "cepa.toml"
        settings.parent.mkdir()
        settings.write_text(SETTINGS, encoding="utf-8")
        for name, content in FILES.items():
            (self.any.root / name).write_text(content, encoding="utf-8")

    @contextlib.contextmanager
    def turn(self, what: str, prompt: str):
        """The block runs the turn over the wire that it gets; what it left behind is judged."""
        wire = next(self.order)
        self.turns += 1
        with steps.step(f"{self.conversation} {self.turns:2} {wire:9} {what}: {prompt}"):
            self.kept.said.append(prompt)
            yield self.wires[wire]
            self.kept.look()

    def other(self, cepa: Cepa) -> Cepa:
        """A new process decides; where there are several wires, over another one than the turn began with."""
        return next((each for each in self.wires.values() if each is not cepa), cepa)

    def question(self, prompt: str) -> None:
        with self.turn("answers", prompt) as cepa:
            cepa.run(prompt, self.conversation)

    def order_of(self, prompt: str, tool: str) -> None:
        """The model is told to use a tool that needs no decision."""
        before = len(self.kept.rows)
        with self.turn("calls a tool", prompt) as cepa:
            cepa.run(prompt, self.conversation)
            self.kept.look()
            calls = [call["name"] for each in self.kept.messages()[before:] for call in each.get("tool_calls", [])]
            same("first call", calls[:1], [tool])

    def pause(self, cepa: Cepa, prompt: str, tool: str) -> dict:
        cepa.run(prompt, self.conversation, expect=PAUSED)
        self.kept.look(waits=True)
        return cepa.only_pause(tool)

    def approved(self, prompt: str, tool: str) -> None:
        with self.turn("approved by a new process", prompt) as cepa:
            pause = self.pause(cepa, prompt, tool)
            self.other(cepa).decide("approve", pause["pause_id"])
            if tool == "write_file":
                written = (cepa.root / pause["args"]["path"]).read_text(encoding="utf-8")
                same("what was written", written, pause["args"]["content"])

    def edited(self, prompt: str) -> None:
        with self.turn("approved with other arguments", prompt) as cepa:
            pause = self.pause(cepa, prompt, "write_file")
            cepa.decide("edit", pause["pause_id"], json.dumps(pause["args"] | {"content": "edited"}))
            same("what was written", (cepa.root / pause["args"]["path"]).read_text(encoding="utf-8"), "edited")

    def rejected(self, prompt: str) -> None:
        with self.turn("rejected", prompt) as cepa:
            pause = self.pause(cepa, prompt, "write_file")
            cepa.decide("reject", pause["pause_id"], "not today")
            same("was written", (cepa.root / pause["args"]["path"]).exists(), False)

    def overtaken(self, prompt: str, tool: str) -> None:
        """Nobody decides: the next message cancels the call, which is then answered."""
        wire = next(self.order)
        self.turns += 1
        with steps.step(f"{self.conversation} {self.turns:2} {wire:9} waits, and the next message comes first: {prompt}"):
            self.kept.said.append(prompt)
            self.pause(self.wires[wire], prompt, tool)

    def cancelled(self, prompt: str) -> None:
        """SIGINT when the answer has begun: what came of it is kept."""
        with self.turn("cancelled in its answer", prompt) as cepa:
            same("exit", self.stopped(self.starts(cepa, prompt), words(), signal.SIGINT), CANCELLED)

    def cancelled_before_a_word(self, prompt: str) -> None:
        """SIGINT while the model reads: nothing is kept."""
        with self.turn("cancelled before a word", prompt) as cepa:
            self.void.append(self.kept.said.pop())
            before = self.requests(cepa)
            asked = lambda process: self.wait(process, lambda: self.requests(cepa) > before)
            same("exit", self.stopped(self.starts(cepa, prompt), asked, signal.SIGINT), CANCELLED)

    def killed(self, prompt: str, then: str, tool: str) -> None:
        """`kill -9` in the answer: the next process first finishes that turn."""
        with self.turn("killed in its answer", prompt) as cepa:
            said = self.kept.said.pop()
            same("exit", self.stopped(self.starts(cepa, prompt), words(), signal.SIGKILL), KILLED)
            self.kept.look()
            self.kept.said.append(said)
            cepa.run(then, self.conversation)
            self.kept.said.append(then)

    def killed_in_a_call(self, prompt: str) -> None:
        """`kill -9` while a command runs: it does not run again, and a person says what came of it."""
        with self.turn("killed in a call", prompt) as cepa:
            pause = self.pause(cepa, prompt, "run_shell")
            where = ["--root", str(cepa.root), "--db", str(cepa.db)]
            # small models do not write long commands; the person who decides does
            edited = json.dumps({"command": "echo once >> ran.txt; sleep 60"})
            process = cepa.start("edit", pause["pause_id"], edited, *cepa.model, *where)
            ran = lambda process: self.wait(process, (cepa.root / "ran.txt").exists)
            same("exit", self.stopped(process, ran, signal.SIGKILL), KILLED)
            end_sleepers(cepa.root)
            self.kept.look(waits=True)
            self.other(cepa).decide("edit", pause["pause_id"], edited, expect=PAUSED)
            unknown = cepa.only_pause("run_shell")
            same("kind of the pause", unknown["kind"], "unknown")
            cepa.decide("reply", unknown["pause_id"], "nobody knows")
            same("runs of the command", (cepa.root / "ran.txt").read_text(encoding="utf-8"), "once\n")

    def through_a_window(self, example: dict[str, Cepa], prompt: str) -> None:
        """The example program continues the conversation: it sees the newest messages, and its answers come in one piece."""
        wire = next(self.order)
        through = example[wire]
        _, model, _, url = through.model
        self.turns += 1
        with steps.step(f"{self.conversation} {self.turns:2} {wire:9} through a window, not streamed: {prompt}"):
            through.root = self.any.root
            self.kept.said.append(prompt)
            words = [model, url, str(self.any.db), self.conversation, str(SHOWN), prompt]
            through.call(*words, expect=COMPLETED)
            self.kept.look()

    def starts(self, cepa: Cepa, prompt: str) -> subprocess.Popen:
        where = ["--conversation", self.conversation, "--root", str(cepa.root), "--db", str(cepa.db)]
        return cepa.start("run", prompt, "--json", *cepa.model, *where)

    @staticmethod
    def stopped(process: subprocess.Popen, ready, how: signal.Signals) -> int:
        """Sends the signal when the process is so far; returns its exit code."""
        try:
            ready(process)
            os.kill(process.pid, how)
            process.communicate(timeout=60)
            return process.returncode
        finally:
            process.kill()
            process.communicate()

    @staticmethod
    def wait(process: subprocess.Popen, done, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end or process.poll() is not None:
                raise Unexpected(f"it did not come that far: {process.communicate(timeout=5)}")
            time.sleep(0.02)

    @staticmethod
    def requests(cepa: Cepa) -> int:
        return len(list((cepa.folder / "sent").glob("*/*.json")))

    def ends(self, at_least: int) -> None:
        with steps.step(f"{self.conversation} what was sent is what is stored, and begins as it began before"):
            starts = judge_sent(self.any.folder / "sent", self.kept, self.void)
            same("requests that begin later", [start for each in starts.values() for start in each if start > 0], [])
            same("calls that wait", self.any.pending(), [])
            ran = self.kept.ran()
            if ran < at_least:
                raise Unexpected(f"{ran} calls ran, at least {at_least} expected: the model does not call its tools")
            requests = ", ".join(f"{wire} {len(each)}" for wire, each in starts.items() if each)
            print(f"   {self.turns} turns, {len(self.kept.rows)} messages, {ran} calls that ran; requests: {requests}")

    def ends_through_a_window(self, sent: pathlib.Path) -> None:
        with steps.step(f"{self.conversation} what the window showed is whole, moved on, and stayed for a while where it began"):
            stayed = 0
            for wire, starts in judge_sent(sent, self.kept, []).items():
                same(f"first messages over {wire}", {self.kept.messages()[start]["role"] for start in starts}, {"user"})
                if min(starts) == 0 or starts != sorted(starts):
                    raise Unexpected(f"the window over {wire} did not move on: {starts}")
                stayed += len(starts) - len(set(starts))
                print(f"   {wire}: began at message {', '.join(map(str, starts))} of {len(self.kept.rows)}")
            if stayed == 0:
                raise Unexpected("each request began at another message: no provider could have kept it")


def words():
    """Reads until a piece of the answer's text has come."""

    def came(process: subprocess.Popen) -> None:
        for line in process.stdout:
            if json.loads(line)["type"] == "text":
                return
        raise Unexpected(f"no text came: {process.communicate(timeout=5)}")

    return came


def end_sleepers(folder: pathlib.Path) -> None:
    """Ends what the killed process had started: the processes that work in its folder."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if (place / "cwd").resolve(strict=True) == folder.resolve():
                os.kill(int(place.name), 9)


def long(story: Story) -> None:
    reads = itertools.cycle(FILES)

    def read() -> None:
        story.order_of(f"Read the file {next(reads)}.", "read_file")

    story.question("What is the capital of France?")
    read()
    read()
    story.approved("Write hello to the file one.txt.", "write_file")
    read()
    story.approved("Write hello to the file two.txt.", "write_file")
    read()
    story.rejected("Write hello to the file three.txt.")
    read()
    story.edited("Write hello to the file four.txt.")
    read()
    story.cancelled("How do you cook an onion soup?")
    read()
    read()
    story.killed("What is the capital of Italy?", "Read the file garlic.txt.", "read_file")
    read()
    story.approved("Run the shell command: date", "run_shell")
    story.overtaken("Write hello to the file five.txt.", "write_file")
    read()
    read()
    story.killed_in_a_call("Run the shell command: date")
    read()
    story.order_of("Read the file missing.txt.", "read_file")
    story.cancelled_before_a_word("What is the capital of Spain?")
    read()
    read()
    story.approved("Write hello to the file six.txt.", "write_file")
    read()
    read()
    read()


def windowed(story: Story, example: dict[str, Cepa]) -> None:
    for name in [*FILES, "missing.txt"]:
        story.through_a_window(example, f"Read the file {name}.")
    story.order_of("Read the file onion.txt.", "read_file")
    story.approved("Write hello to the file seven.txt.", "write_file")
    story.ends(at_least=20)


def short(story: Story) -> None:
    story.order_of("Read the file onion.txt.", "read_file")
    story.approved("Write hello to the file one.txt.", "write_file")
    story.cancelled("How do you cook an onion soup?")
    story.order_of("Read the file garlic.txt.", "read_file")
    story.rejected("Write hello to the file three.txt.")
    story.killed("What is the capital of Italy?", "Read the file leek.txt.", "read_file")
    story.approved("Run the shell command: date", "run_shell")
    story.order_of("Read the file chive.txt.", "read_file")
    story.question("What is the capital of France?")
    story.ends(at_least=5)


def main() -> None:
    wanted = steps.options()
    binary = pathlib.Path(wanted.cepa)
    example = str(binary.parent / "examples" / f"window{binary.suffix}")
    work, beside = (steps.folder(wanted, name) for name in ("llamacpp-long", "llamacpp-long-window"))
    with llamacpp.serving(work / "llamacpp.log", "--context", "16384", "--slots", "2", "--brief") as port:
        with (
            llamacpp.wires(wanted.cepa, work, port) as wires,
            llamacpp.wires(example, beside, port) as through,
        ):
            story = Story(wires, ROUND, "long")
            long(story)
            windowed(story, through)
            story.ends_through_a_window(beside / "sent")
        for name in llamacpp.WIRES:
            with llamacpp.wires(wanted.cepa, steps.folder(wanted, f"llamacpp-long-{name}"), port) as wires:
                short(Story({name: wires[name]}, [name], f"only-{name}"))


if __name__ == "__main__":
    main()
