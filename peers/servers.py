"""Starting a peer on 127.0.0.1 and ending it again, whatever happens; and a proxy that keeps what our binary really sent."""

import contextlib
import ctypes
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command: list[str], ready_url: str, log: pathlib.Path, seconds: float = 60):
    """Runs a server in a process group of its own until the block ends; the group is killed with it."""
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_ready(server, ready_url, log, seconds)
        yield server
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(5)


def _wait_until_ready(server: subprocess.Popen, url: str, log: pathlib.Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{server.args[0]} does not answer at {url}:\n{log.read_text(errors='replace')}")


def end_when_asked() -> None:
    """SIGTERM ends the program as an exception does, so that every `finally` runs; so does the end of whoever started it."""

    def ended(*_):
        raise SystemExit("ended from outside")

    signal.signal(signal.SIGTERM, ended)
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


@contextlib.contextmanager
def recording(upstream_port: int, folder: pathlib.Path, **members: object):
    """A proxy in front of a peer. Yields its port; each request body is kept in `folder/WIRE/` for the validators. The peer gets it
    with `members` set."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"upstream": upstream_port, "folder": folder, "lock": threading.Lock(), "members": members}
    handler = type("Recording", (_Proxy,), own)
    server = http.server.ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: int
    folder: pathlib.Path
    lock: threading.Lock
    members: dict[str, object]
    wires = {
        "/chat/completions": "openai_chat",
        "/responses": "openai_responses",
        "/messages": "anthropic",
        ":generateContent": "gemini",
        ":streamGenerateContent": "gemini",
    }

    def do_GET(self):
        self._forward(b"")

    def do_POST(self):
        self._forward(self._body())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _forward(self, body: bytes) -> None:
        self._keep(body)
        if body and self.members:
            body = json.dumps(json.loads(body) | self.members).encode()
        skipped = ("host", "connection", "transfer-encoding", "content-length", "accept-encoding")
        headers = {key: value for key, value in self.headers.items() if key.lower() not in skipped}
        upstream = http.client.HTTPConnection(HOST, self.upstream, timeout=300)
        self.close_connection = True
        try:
            upstream.request(self.command, self.path, body or None, headers)
            self._answer(upstream.getresponse())
        except (OSError, http.client.HTTPException):
            # what the peer did to us is done to the client: the connection breaks in mid-air
            self.connection.close()
        finally:
            upstream.close()

    def _answer(self, response: http.client.HTTPResponse) -> None:
        self.send_response(response.status)
        for key, value in response.getheaders():
            if key.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                self.send_header(key, value)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        while piece := response.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if response.chunked and response.chunk_left not in (None, 0):
            raise http.client.IncompleteRead(b"")
        self.wfile.write(b"0\r\n\r\n")

    def _keep(self, body: bytes) -> None:
        wire = next((name for end, name in self.wires.items() if self.path.split("?")[0].endswith(end)), None)
        if wire is None or self.command != "POST":
            return
        version = self.headers.get("anthropic-version", "")
        with self.lock:
            place = self.folder / wire
            place.mkdir(exist_ok=True)
            number = len(list(place.glob("*.json"))) + 1
            name = f"{number:03}{'-' + version if version else ''}.json"
            (place / name).write_bytes(body)

    def log_message(self, *_):
        pass


def sent(folder: pathlib.Path, wire: str) -> list[dict]:
    """The request bodies that went through the proxy, in order."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted((folder / wire).glob("*.json"))]
