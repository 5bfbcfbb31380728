"""What every Python client shares: the scenarios of the Rust clients (bench/meter), and how their cost is read.

    client.py SCENARIO SERVER [KEY=VALUE...]

A client is a class with `new(work, model)`, `open(id)`, `turn(talk, text)` and `stream(talk, text)`.
"""

import asyncio
import json
import math
import os
import socket
import sys
import time

SYSTEM = "You are a helpful assistant."
USER = "hello there"


class Work:
    def __init__(self):
        self.scenario, self.server = sys.argv[1:3]
        keys = dict(word.split("=", 1) for word in sys.argv[3:])
        self.turns, self.warm_up = int(keys.get("turns", 100)), int(keys.get("warm_up", 5))
        self.at_once, self.db = int(keys.get("at_once", 1)), keys.get("db")
        # Seconds after which a conversation that grows stops, and tells how far it came.
        self.budget = float(keys.get("budget", math.inf))
        self.base_url = self.server + "/v1"

    @property
    def is_async(self):
        return self.scenario == "at_once"


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def cpu_us():
    return time.process_time() * 1e6


def server_counts(work):
    host, port = work.server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall(b"GET /stats HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n")
        reply = b"".join(iter(lambda: wire.recv(4096), b""))
    counts = json.loads(reply.split(b"\r\n\r\n", 1)[1])
    return counts["calls"], counts["bytes"]


class Region:
    """A stretch of work that is measured."""

    def __init__(self, work):
        self.work, self.counts = work, server_counts(work)
        self.wall, self.cpu = time.perf_counter(), cpu_us()

    def end(self, turns, **more):
        cpu, wall = cpu_us() - self.cpu, (time.perf_counter() - self.wall) * 1e6
        calls, read = server_counts(self.work)
        line = {"scenario": self.work.scenario, "turns": turns, "calls": calls - self.counts[0], "cpu_us": cpu}
        line |= {"request_bytes": read - self.counts[1], "wall_us": wall, "peak_bytes": status("VmHWM:"), **more}
        print(json.dumps(line))


def commits(path):
    """Transactions in SQLite's write-ahead log now: each ends with a marked frame."""
    try:
        with open(path + "-wal", "rb") as file:
            log = file.read()
    except FileNotFoundError:
        return None
    if len(log) < 32:
        return 0
    number = lambda at: int.from_bytes(log[at : at + 4], "big")
    size, count = number(8) + 24, 0
    for frame in range(32, len(log) - size + 1, size):
        if log[frame + 8 : frame + 16] != log[16:24]:
            break
        count += number(frame + 4) > 0
    return count


def said(conversation, turn):
    return f"hello there {conversation} {turn}"


def plain_bytes(conversation, turns):
    """Bytes of the JSON of so many turns, as a loop written by hand sends it."""
    answer = len('{"role":"assistant","content":"word0 word1 word2 "}')
    return sum(len('{"role":"user","content":""}') + len(said(conversation, turn)) + answer for turn in range(turns))


async def checked(client, talk, text):
    answer = await client.turn(talk, text)
    if not answer.startswith("word0"):
        raise SystemExit(f"the answer was {answer!r}")


async def first_turns(client, name, count):
    for index in range(count):
        await checked(client, client.open(f"{name}{index}"), USER)


async def fresh(work, client):
    await first_turns(client, "warm", work.warm_up)
    region = Region(work)
    await first_turns(client, "fresh", work.turns)
    region.end(work.turns)


async def at_once(work, client):
    async def all_at_once(name, turns):
        await asyncio.gather(*(first_turns(client, f"{name}{task} ", turns) for task in range(work.at_once)))

    await all_at_once("warm", 1)
    each = -(-work.turns // work.at_once)
    region = Region(work)
    await all_at_once("fresh", each)
    region.end(each * work.at_once)


async def grow(work, client, talk):
    marks, start = [cpu_us()], time.perf_counter()
    for index in range(work.turns):
        await checked(client, talk, said(0, index))
        marks.append(cpu_us())
        if time.perf_counter() - start > work.budget:
            break
    return marks


def growth(marks):
    turns = len(marks) - 1
    tenth = max(turns // 10, 1)
    return {"first_us": (marks[tenth] - marks[0]) / tenth, "last_us": (marks[-1] - marks[-1 - tenth]) / tenth}


async def long(work, client):
    await first_turns(client, "warm", work.warm_up)
    talk, region = client.open("long"), Region(work)
    marks = await grow(work, client, talk)
    region.end(len(marks) - 1, **growth(marks))


async def longdb(work, client):
    talk = client.open("probe")
    await checked(client, talk, USER)
    before = commits(work.db)
    for _ in range(10):
        await checked(client, talk, USER)
    after = commits(work.db)
    each = None if before is None or after is None or after < before else (after - before) / 10
    talk, region = client.open("long"), Region(work)
    marks = await grow(work, client, talk)
    turns = len(marks) - 1
    # What the probe said is in the file too.
    plain = plain_bytes(0, turns) + 11 * plain_bytes(0, 1)
    region.end(turns, **growth(marks), commits=each, plain_bytes=plain)


async def stream(work, client):
    for index in range(work.warm_up):
        await client.stream(client.open(f"warm{index}"), USER)
    region, chunks = Region(work), 0
    for index in range(work.turns):
        chunks += await client.stream(client.open(f"fresh{index}"), USER)
    region.end(work.turns, chunks=chunks)


async def idle(work, client):
    await first_turns(client, "warm", work.warm_up)
    region, talks, before = Region(work), [], status("VmRSS:")
    for conversation in range(work.turns):
        talk = client.open(f"idle{conversation}")
        for index in range(10):
            await checked(client, talk, said(conversation, index))
        talks.append(talk)
    resident = (status("VmRSS:") - before) / work.turns
    plain = sum(plain_bytes(conversation, 10) for conversation in range(work.turns)) / work.turns
    region.end(work.turns * 10, conversations=work.turns, resident_bytes=resident, plain_bytes=plain)


async def cold(work, client):
    await first_turns(client, "cold", 1)
    print(json.dumps({"scenario": "cold", "turns": 1, "calls": 1}))


SCENARIOS = {
    "turn10": ("loop-10", fresh),
    "par16": ("par-16", fresh),
    "at_once": ("loop-10", at_once),
    "long": ("say-3", long),
    "longdb": ("say-3", longdb),
    "stream": ("say-2000", stream),
    "idle": ("say-3", idle),
    "cold": ("say-3", cold),
}


def main(client):
    work = Work()
    if work.scenario not in SCENARIOS:
        raise SystemExit(f"no scenario is called {work.scenario}")
    model, scenario = SCENARIOS[work.scenario]

    async def run():
        await scenario(work, await client.new(work, model))

    asyncio.run(run())
    # Some keep threads that would hold the process up.
    sys.stdout.flush()
    os._exit(0)
