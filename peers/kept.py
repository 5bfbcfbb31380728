"""A conversation as it is stored and as it was sent: what must hold of both, whatever the model said and whoever was killed."""

import contextlib
import json
import pathlib
import sqlite3

from cepa import Cepa, Unexpected, same
from llamacpp import WIRES


class Kept:
    """The stored messages of one conversation. They only grow; each look compares them with the one before."""

    def __init__(self, cepa: Cepa, conversation: str):
        self.cepa, self.conversation = cepa, conversation
        self.rows: list[tuple] = []
        #: What was said, in order, and has to be stored once each.
        self.said: list[str] = []

    def query(self, sql: str) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(f"{self.cepa.db.as_uri()}?mode=ro", uri=True)) as db:
            return db.execute(sql, [self.conversation]).fetchall()

    def look(self, waits: bool = False) -> None:
        """`waits`: the last calls are not answered yet, because a person has to decide or the process is dead."""
        rows = self.query(
            "SELECT m.seq, m.id, m.body FROM messages m JOIN conversations c ON c.key = m.conversation"
            " WHERE c.id = ? ORDER BY m.seq"
        )
        same("what was stored before", rows[: len(self.rows)], self.rows)
        same("numbers of the messages", [seq for seq, _, _ in rows], list(range(1, len(rows) + 1)))
        once("ids of messages", [name for _, name, _ in rows])
        messages = [json.loads(body) for _, _, body in rows]
        once("ids of calls", [call["id"] for message in messages for call in message.get("tool_calls", [])])
        answered(messages, waits)
        same("what was said", [text(each["content"]) for each in messages if each["role"] == "user"], self.said)
        shown = self.cepa.call("history", self.conversation, "--json", "--db", str(self.cepa.db), expect=0)
        same("what `history` shows", [json.loads(line) for line in shown.splitlines()], messages)
        twice = self.query(
            "SELECT l.tool, l.args, l.attempt FROM calls l JOIN turns t ON t.key = l.turn"
            " JOIN conversations c ON c.key = t.conversation WHERE c.id = ? AND l.attempt > 1"
        )
        same("calls that ran twice", twice, [])
        self.rows = rows

    def messages(self) -> list[dict]:
        return [json.loads(body) for _, _, body in self.rows]

    def ran(self) -> int:
        """Calls of tools that really ran."""
        results = [each for each in self.messages() if each["role"] == "tool"]
        return sum(each.get("status", "ok") in ("ok", "error") for each in results)


def answered(messages: list[dict], waits: bool) -> None:
    """Each call has its one result, right behind it and in order."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            expected = open_calls.pop(0) if open_calls else None
            same("the result", message["tool_call_id"], expected)
        else:
            same("calls without a result", open_calls, [])
            open_calls = [call["id"] for call in message.get("tool_calls", [])]
    if bool(open_calls) != waits:
        raise Unexpected(f"calls without a result at the end: {open_calls}, a turn that waits: {waits}")


def once(what: str, names: list[str]) -> None:
    same(f"{what} that come twice", sorted({name for name in names if names.count(name) > 1}), [])


def text(content: object) -> str:
    """The words of a content on any wire: a text, or parts with texts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def judge_sent(sent: pathlib.Path, kept: Kept, void: list[str]) -> dict[str, list[int]]:
    """Every request shows what is stored, whole messages from one on, and each later one of a wire that begins at the same message
    has the bytes of the one before it. `void`: said, but taken back when the turn was cancelled before its first word. Returns at
    which message each request began."""
    stored = from_store(kept.messages())
    starts: dict[str, list[int]] = {}
    for wire, (_, _, folder) in WIRES.items():
        starts[wire] = []
        before: list[str] = []
        around = None
        for file in sorted((sent / folder).glob("*.json")):
            body = file.read_text(encoding="utf-8")
            request = json.loads(body)
            told = READERS[wire](request)
            pieces = elements(body, "input" if wire == "responses" else "messages")
            if told[-1][0] == "user" and told[-1][1] in void:
                told, pieces = told[:-1], pieces[:-1]
            start = place(told, stored, starts[wire][-1:])
            if start is None:
                at = next((i for i, pair in enumerate(zip(told, stored)) if pair[0] != pair[1]), min(len(told), len(stored)))
                raise Unexpected(f"{file} does not show what is stored: {at}\n{told[at : at + 2]}\n{stored[at : at + 2]}")
            if starts[wire][-1:] == [start] and pieces[: len(before)] != before:
                at = next(i for i, piece in enumerate(before) if pieces[i : i + 1] != [piece])
                raise Unexpected(f"{file} does not begin as the one before: {at}\n{before[at]}\n{pieces[at : at + 1]}")
            fixed = {key: request.get(key) for key in ("tools", "system", "instructions")}
            same(f"tools and system text of {file}", fixed, around or fixed)
            starts[wire].append(start)
            before, around = pieces, fixed
    return starts


def place(told: list[tuple], stored: list[tuple], likely: list[int]) -> int | None:
    """At which stored message a request begins."""
    for start in [*likely, *range(len(stored))]:
        if told == stored[start : start + len(told)]:
            return start
    return None


def elements(body: str, name: str) -> list[str]:
    """The bytes of each element of an array that is a member of the whole: `json` alone forgets spaces and order."""
    scan = json.JSONDecoder().raw_decode

    def after(at: int, skipped: str) -> int:
        while body[at] in skipped:
            at += 1
        return at

    at = after(0, " \n{")
    while body[at] != "}":
        key, at = scan(body, at)
        at = after(at, " \n:")
        if key == name:
            pieces = []
            at = after(at, " \n[")
            while body[at] != "]":
                piece, end = scan(body, at)
                pieces.append(without_cache_marks(piece, body[at:end]))
                at = after(end, " \n,")
            return pieces
        at = after(scan(body, at)[1], " \n,")
    raise Unexpected(f"no {name} in {body[:200]}")


def without_cache_marks(piece: dict, written: str) -> str:
    """The mark that a part of the prompt may be cached moves along; only where there is one are the bytes not compared."""
    if "cache_control" not in written:
        return written
    for block in piece["content"]:
        block.pop("cache_control", None)
    return json.dumps(piece, separators=(",", ":"), ensure_ascii=False)


def from_store(messages: list[dict]) -> list[tuple]:
    told = []
    for message in messages:
        if message["role"] == "tool":
            told.append(("tool", message["tool_call_id"], text(message["content"])))
        elif message["role"] == "user":
            told.append(("user", text(message["content"])))
        else:
            calls = [(call["id"], call["name"], call["args"]) for call in message.get("tool_calls", [])]
            told.append(("assistant", text(message["content"]), calls))
    return told


def from_chat(request: dict) -> list[tuple]:
    told = []
    for message in request["messages"]:
        if message["role"] == "tool":
            told.append(("tool", message["tool_call_id"], text(message["content"])))
        elif message["role"] == "user":
            told.append(("user", text(message["content"])))
        elif message["role"] == "assistant":
            calls = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
            calls = [(name, function["name"], json.loads(function["arguments"])) for name, function in calls]
            told.append(("assistant", text(message["content"]), calls))
    return told


def from_messages(request: dict) -> list[tuple]:
    told = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
            told.append(("assistant", text(blocks), calls))
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                told.append(("tool", block["tool_use_id"], text(block["content"])))
            else:
                told.append(("user", block["text"]))
    return told


def from_responses(request: dict) -> list[tuple]:
    told = []
    for item in request["input"]:
        if item["type"] == "function_call_output":
            told.append(("tool", item["call_id"], text(item["output"])))
        elif item["type"] == "function_call":
            if not told or told[-1][0] != "assistant":
                told.append(("assistant", "", []))
            told[-1][2].append((item["call_id"], item["name"], json.loads(item["arguments"])))
        elif item["role"] == "user":
            told.append(("user", text(item["content"])))
        else:
            told.append(("assistant", text(item["content"]), []))
    return told


READERS = {"chat": from_chat, "messages": from_messages, "responses": from_responses}
