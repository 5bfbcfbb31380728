"""Driving our own binary as a person's script would: one process per command, everything it needs in one folder."""

import contextlib
import json
import os
import pathlib
import subprocess

COMPLETED, FAILED, USAGE, PAUSED = 0, 1, 2, 3
KEY = "sk-peer-key-that-must-not-leak"


class Unexpected(Exception):
    """What a step saw instead of what it expected."""


class Cepa:
    def __init__(self, binary: str, folder: pathlib.Path, model: str, base_url: str):
        self.binary, self.folder = binary, folder
        self.root, self.db = folder / "files", folder / "cepa.db"
        self.root.mkdir(parents=True, exist_ok=True)
        self.model = ["--model", model, "--base-url", base_url]
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self.environment = kept | home | {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}

    def start(self, *words: str) -> subprocess.Popen:
        command = [self.binary, *words]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def call(self, *words: str, expect: int, seconds: float = 240) -> str:
        """Runs a command to its end; its exit code has to be `expect`. Returns what it printed."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            raise
        said = f"cepa {' '.join(words)}\n  exit {process.returncode}\n  out: {out.strip()}\n  err: {err.strip()}"
        if KEY in out + err:
            raise Unexpected(f"the key was shown\n{said}")
        if process.returncode != expect:
            raise Unexpected(f"exit {expect} expected\n{said}")
        return out

    def run(self, prompt: str, conversation: str, *more: str, expect: int = COMPLETED) -> str:
        where = ["--conversation", conversation, "--root", str(self.root), "--db", str(self.db)]
        return self.call("run", prompt, *self.model, *where, *more, expect=expect)

    def pending(self) -> list[dict]:
        return json.loads(self.call("pending", "--json", "--db", str(self.db), expect=COMPLETED))

    def only_pause(self, tool: str) -> dict:
        pauses = self.pending()
        if [pause["tool"] for pause in pauses] != [tool]:
            raise Unexpected(f"one waiting call of {tool} expected, found {pauses}")
        return pauses[0]

    def decide(self, *words: str, expect: int = COMPLETED) -> str:
        where = ["--root", str(self.root), "--db", str(self.db)]
        return self.call(*words, *self.model, *where, expect=expect)

    def history(self, conversation: str) -> str:
        return self.call("history", conversation, "--db", str(self.db), expect=COMPLETED)


def same(what: str, found, expected) -> None:
    if found != expected:
        raise Unexpected(f"{what}: expected {expected!r}, found {found!r}")


def holds(what: str, text: str, part: str) -> None:
    if part not in text:
        raise Unexpected(f"{what}: {part!r} expected in {text!r}")
