"""llmock, a mock that breaks as it is told and then judges its client; and how the wires say their simplest things to it."""

import dataclasses
import json
import pathlib
import subprocess
import urllib.request

from servers import HOST

# everything that its verdict can hold against a client: https://pypi.org/project/llmock/
FINDINGS = {
    "retry_after_ignored",
    "retried_non_retryable",
    "retry_storm",
    "truncated_stream_accepted",
    "malformed_chunk_ignored",
    "no_backoff",
    "gave_up",
    "no_read_timeout",
}


class Llmock:
    """A running server, through its control API."""

    def __init__(self, program: pathlib.Path, port: int):
        self.program, self.url = program, f"http://{HOST}:{port}"

    def command(self, *settings: str) -> list[str]:
        port = self.url.rpartition(":")[2]
        return [str(self.program), "serve", "--host", HOST, "--port", port, "--log-level", "warning", *settings]

    def script(self, *behaviors: dict) -> None:
        self._control("POST", "scenario", {"behaviors": list(behaviors)})

    def waiting(self) -> list[dict]:
        """What was scripted and has not happened."""
        return self._control("GET", "scenario")["pending"]

    def requests(self) -> list[dict]:
        return self._control("GET", "requests")["requests"]

    def findings(self) -> list[str]:
        """What it holds against the client until now."""
        return [f"{finding['code']}: {finding['title']}" for finding in self._control("GET", "verdict")["findings"]]

    def forget(self) -> None:
        self._control("POST", "reset", {})

    def report(self) -> tuple[int, dict]:
        """`llmock report`, where a warning counts like an error: its exit code, and the verdict."""
        command = [str(self.program), "report", "--url", self.url, "--strict", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", timeout=60, check=False)
        return done.returncode, json.loads(done.stdout)

    def _control(self, method: str, what: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_llmock/{what}", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


@dataclasses.dataclass(frozen=True)
class Wire:
    """Where llmock speaks a wire, and how a prompt is put on it by hand."""

    base: str
    chat: str
    key_header: str
    variable: str
    # the folder of its golden requests, and of what our binary sent
    kept_as: str

    def headers(self, key: str) -> dict[str, str]:
        value = f"Bearer {key}" if self.key_header == "authorization" else key
        return {"content-type": "application/json", self.key_header: value}

    def body(self, prompt: str) -> dict:
        if self.kept_as == "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        if self.kept_as == "openai_responses":
            return {"model": "m", "stream": True, "input": prompt}
        return {"model": "m", "stream": True, "max_tokens": 99, "messages": [{"role": "user", "content": prompt}]}


WIRES = {
    "openai": Wire("/v1", "/chat/completions", "authorization", "OPENAI", "openai_chat"),
    "openai-responses": Wire("/v1", "/responses", "authorization", "OPENAI", "openai_responses"),
    "anthropic": Wire("/anthropic", "/v1/messages", "x-api-key", "ANTHROPIC", "anthropic"),
    "gemini": Wire("/gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", "GEMINI", "gemini"),
}


def fail(status: int, **more) -> dict:
    return {"type": "fail", "status": status, **more}


def broken(kind: str, after_chunks: int, **more) -> dict:
    """A stream that goes wrong after so many events."""
    return {"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, **more}


def reply(text: str, times: int = 1) -> dict:
    return {"type": "reply", "text": text, "times": times}
