#!/usr/bin/env python3
"""Would Anthropic take these message requests?  validate_anthropic.py REQUEST.json…

Two judges: the types of the official `anthropic` package, and the rules that the API enforces although no type says them. A file
whose name contains 2026-10-21 is judged as a request of that API version, every other one as of 2023-06-01. The package's types are
those of 2026-10-21; the older version differs in that it still takes sampling parameters.
"""

import re

import golden
import strict_types

params = strict_types.load("anthropic", "anthropic.types.message_create_params")
streaming = strict_types.Judge(params.MessageCreateParamsStreaming)
plain = strict_types.Judge(params.MessageCreateParamsNonStreaming)
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
NEW = "2026-10-21"
SAMPLING = {"temperature": 1, "top_p": 1, "top_k": None}


def complaints(body: dict, name: str) -> list[str]:
    new = NEW in name
    typed, found = dict(body), []
    for key, most in {} if new else SAMPLING.items():
        value = typed.pop(key, 0)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or value < 0 or (most is not None and value > most):
            found.append(f"rule: {key} is {value!r}")
    found += (streaming if body.get("stream") else plain).complaints(typed)
    # the rules take the shape for granted
    return found or rules(body, new)


def rules(body: dict, new: bool) -> list[str]:
    found = []
    names = [tool.get("name") for tool in body.get("tools") or []]
    found += [f"rule: tool name {name!r} does not match {NAME.pattern}" for name in names if not NAME.match(str(name))]
    if len(set(names)) != len(names):
        found.append("rule: two tools have one name")
    if body.get("tool_choice") and not body.get("tools"):
        found.append("rule: tool_choice without tools")
    most, thinking = body.get("max_tokens") or 0, body.get("thinking") or {}
    if most < 1:
        found.append("rule: max_tokens is below 1")
    if thinking.get("type") == "enabled" and not 1024 <= thinking.get("budget_tokens", 0) < most:
        found.append("rule: thinking.budget_tokens is below 1024 or not below max_tokens")
    if "system" in body and not body["system"]:
        found.append("rule: system is empty")
    messages = body.get("messages") or []
    if not messages or messages[0].get("role") != "user":
        found.append("rule: messages do not begin with the user")
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant" and isinstance(last.get("content"), str) and last["content"] != last["content"].rstrip():
        found.append("rule: the last assistant text ends in white space")
    return found + pairing(messages) + blocks_in_place(messages, new)


def blocks(message: dict) -> list[dict]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def of_type(message: dict, kind: str, key: str) -> list:
    return [block.get(key) for block in blocks(message) if block.get("type") == kind]


def pairing(messages: list[dict]) -> list[str]:
    """Every tool_use is answered in the very next message, and nothing else is answered."""
    found, seen = [], set()
    for at, message in enumerate(messages):
        calls = of_type(message, "tool_use", "id")
        found += [f"rule: messages/{at}: tool_use id {call!r} is used twice" for call in calls if call in seen]
        seen.update(calls)
        if len(set(calls)) != len(calls):
            found.append(f"rule: messages/{at}: two calls have one id")
        answers = of_type(messages[at + 1], "tool_result", "tool_use_id") if at + 1 < len(messages) else []
        found += [f"rule: messages/{at}: {call!r} has no result in the next message" for call in calls if call not in answers]
        asked = of_type(messages[at - 1], "tool_use", "id") if at else []
        for answer in of_type(message, "tool_result", "tool_use_id"):
            if answer in asked:
                asked.remove(answer)
            else:
                found.append(f"rule: messages/{at}: the result {answer!r} answers no call of the message before")
    return found


def blocks_in_place(messages: list[dict], new: bool) -> list[str]:
    found = []
    for at, message in enumerate(messages):
        user, assistant = message.get("role") == "user", message.get("role") == "assistant"
        if not blocks(message) and not (assistant and at + 1 == len(messages)):
            found.append(f"rule: messages/{at} is empty")
        other_content = False
        for block in blocks(message):
            kind = block.get("type")
            if kind == "text" and not (block.get("text") or "").strip():
                found.append(f"rule: messages/{at} has an empty text")
            if kind == "tool_result" and (other_content or not user):
                found.append(f"rule: messages/{at}: tool_result after other content, or not from the user")
            if kind == "tool_use" and not assistant:
                found.append(f"rule: messages/{at}: tool_use outside an assistant message")
            if new and kind == "document" and assistant:
                found.append(f"rule: messages/{at}: document in an assistant message ({NEW})")
            other_content |= kind != "tool_result"
    return found


GOOD = {
    "model": "m",
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "w", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
    ],
    "tools": [{"name": "w", "input_schema": {"type": "object"}}],
}
BAD = {
    "no model": lambda body: body.pop("model"),
    "no max_tokens": lambda body: body.pop("max_tokens"),
    "an unknown key": lambda body: body.update(nonsense=1),
    "an unknown key in a block": lambda body: body["messages"][2]["content"][0].update(status="ok"),
    "a number as text": lambda body: body.update(max_tokens="9"),
    "a call without a result": lambda body: body["messages"].pop(),
    "a result without a call": lambda body: body["messages"].pop(1),
    "a result after text": lambda body: body["messages"][2]["content"].insert(0, {"type": "text", "text": "so"}),
    "an empty text": lambda body: body["messages"][0].update(content=""),
    "input as text": lambda body: body["messages"][1]["content"][0].update(input="{}"),
    "a tool of another wire": lambda body: body["tools"].append({"type": "function", "function": {"name": "w"}}),
    "the assistant first": lambda body: body["messages"].pop(0),
    "too warm": lambda body: body.update(temperature=1.5),
}

if __name__ == "__main__":
    golden.main(complaints, GOOD, BAD)
