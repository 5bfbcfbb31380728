#!/usr/bin/env python3
"""Would OpenAI take these requests to its Responses API?  validate_responses.py REQUEST.json…

Three judges: the types of the official `openai` package; OpenAI's own OpenAPI document, if CEPA_OPENAI_SPEC names a copy of it; and
the rules about calls, outputs and reasoning that the API enforces although no schema says them.
"""

import json
import os
import re

import golden
import strict_types

params = strict_types.load("openai", "openai.types.responses.response_create_params")
streaming = strict_types.Judge(params.ResponseCreateParamsStreaming)
plain = strict_types.Judge(params.ResponseCreateParamsNonStreaming)
document = None
if os.environ.get("CEPA_OPENAI_SPEC"):
    import openai_spec

    document = openai_spec.Judge(os.environ["CEPA_OPENAI_SPEC"], openai_spec.RESPONSES)
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


def complaints(body: dict, _name: str) -> list[str]:
    found = (streaming if body.get("stream") else plain).complaints(body)
    if document:
        found += document.complaints(body)
    # the rules take the shape for granted
    return found or rules(body)


def rules(body: dict) -> list[str]:
    found = []
    names = [tool.get("name") for tool in body.get("tools") or [] if tool.get("type") == "function"]
    found += [f"rule: tool name {name!r} does not match {NAME.pattern}" for name in names if not NAME.match(str(name))]
    if len(set(names)) != len(names):
        found.append("rule: two tools have one name")
    if body.get("stream_options") and not body.get("stream"):
        found.append("rule: stream_options without stream")
    if body.get("tool_choice") is not None and not body.get("tools"):
        found.append("rule: tool_choice without tools")
    items = body["input"] if isinstance(body.get("input"), list) else []
    if not items and not body.get("input"):
        found.append("rule: input is empty")
    return found + pairing(items) + reasoning(items, body.get("store", True))


def pairing(items: list[dict]) -> list[str]:
    """Every call is answered once, and nothing else is answered; no item stands twice."""
    found, open_calls, seen, ids = [], [], set(), set()
    for at, item in enumerate(items):
        call = item.get("call_id")
        if item.get("type") == "function_call":
            if call in seen:
                found.append(f"rule: input/{at}: two calls have the id {call!r}")
            if not NAME.match(str(call)):
                found.append(f"rule: input/{at}: the id {call!r} does not match {NAME.pattern}")
            seen.add(call)
            open_calls.append(call)
            found += [f"rule: input/{at}: {text}" for text in arguments(item)]
        if item.get("type") == "function_call_output":
            if call in open_calls:
                open_calls.remove(call)
            else:
                found.append(f"rule: input/{at} answers no open call ({call!r})")
        if item.get("id"):
            if item["id"] in ids:
                found.append(f"rule: input/{at}: two items have the id {item['id']!r}")
            ids.add(item["id"])
    if open_calls:
        found.append(f"rule: the outputs of {open_calls} are missing")
    return found


def reasoning(items: list[dict], stored: bool) -> list[str]:
    """Reasoning can be read again, and what it led to follows it."""
    found = []
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if not stored and not item.get("encrypted_content") and not item.get("content"):
            found.append(f"rule: input/{at}: nothing is stored, and the reasoning is not here")
        following = items[at + 1] if at + 1 < len(items) else {"role": "nobody"}
        if following.get("role", "assistant") != "assistant" or following.get("type") == "function_call_output":
            found.append(f"rule: input/{at}: reasoning without its following item")
    return found


def arguments(call: dict) -> list[str]:
    try:
        if isinstance(json.loads(call.get("arguments", "")), dict):
            return []
        return [f"the arguments of {call.get('call_id')!r} are no JSON object"]
    except (TypeError, ValueError):
        return [f"the arguments of {call.get('call_id')!r} are not JSON text"]


GOOD = {
    "model": "m",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "w", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "message", "role": "assistant", "content": "It is sunny."},
    ],
    "tools": [{"type": "function", "name": "w", "parameters": {"type": "object", "properties": {}}, "strict": False}],
}
BAD = {
    "an unknown key": lambda body: body.update(stop=["END"]),
    "an unknown key in an item": lambda body: body["input"][3].update(name_of_tool="w"),
    "a number as text": lambda body: body.update(max_output_tokens="99"),
    "an empty input": lambda body: body.update(input=[]),
    "a part of the other side": lambda body: body["input"][0]["content"][0].update(type="output_text"),
    "reasoning without a summary": lambda body: body["input"][1].pop("summary"),
    "reasoning that nobody has": lambda body: body["input"][1].pop("encrypted_content"),
    "reasoning alone": lambda body: body["input"].append(body["input"].pop(1)),
    "a call without an output": lambda body: body["input"].pop(3),
    "an output without a call": lambda body: body["input"].pop(2),
    "arguments as an object": lambda body: body["input"][2].update(arguments={}),
    "broken arguments": lambda body: body["input"][2].update(arguments="{"),
    "an id of a foreign alphabet": lambda body: [item.update(call_id="a|b") for item in body["input"][2:4]],
    "an item twice": lambda body: body["input"].append({**body["input"][2], "call_id": "c2"}),
    "a tool of chat completions": lambda body: body["tools"].append({"type": "function", "function": {"name": "v"}}),
    "two tools of one name": lambda body: body["tools"].append(body["tools"][0]),
}

if __name__ == "__main__":
    golden.main(complaints, GOOD, BAD)
