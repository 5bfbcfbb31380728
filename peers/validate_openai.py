#!/usr/bin/env python3
"""Would OpenAI take these chat completion requests?  validate_openai.py REQUEST.json…

Three judges: the types of the official `openai` package; OpenAI's own OpenAPI document, if CEPA_OPENAI_SPEC names a copy of it; and
the rules about calls and results that the API enforces although no schema says them.
"""

import json
import os
import re

import golden
import strict_types

params = strict_types.load("openai", "openai.types.chat.completion_create_params")
streaming = strict_types.Judge(params.CompletionCreateParamsStreaming)
plain = strict_types.Judge(params.CompletionCreateParamsNonStreaming)
document = None
if os.environ.get("CEPA_OPENAI_SPEC"):
    import openai_spec

    document = openai_spec.Judge(os.environ["CEPA_OPENAI_SPEC"], openai_spec.CHAT)
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


def complaints(body: dict, _name: str) -> list[str]:
    found = (streaming if body.get("stream") else plain).complaints(body)
    if document:
        found += document.complaints(body)
    # the rules take the shape for granted
    return found or rules(body)


def rules(body: dict) -> list[str]:
    found = []
    tools = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
    names = [tool.get("function", {}).get("name") for tool in tools]
    found += [f"rule: tool name {name!r} does not match {NAME.pattern}" for name in names if not NAME.match(str(name))]
    if len(set(names)) != len(names):
        found.append("rule: two tools have one name")
    if body.get("stream_options") and not body.get("stream"):
        found.append("rule: stream_options without stream")
    for key in ("tool_choice", "parallel_tool_calls"):
        if body.get(key) is not None and not body.get("tools"):
            found.append(f"rule: {key} without tools")
    return found + pairing(body.get("messages") or [])


def pairing(messages: list[dict]) -> list[str]:
    """Every call is answered, right after the message that made it, once."""
    found, open_calls = [], []
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") in open_calls:
                open_calls.remove(message["tool_call_id"])
            else:
                found.append(f"rule: messages/{at} answers no open call ({message.get('tool_call_id')!r})")
            continue
        if open_calls:
            found.append(f"rule: messages/{at} comes before the results of {open_calls}")
            open_calls = []
        if message.get("role") == "assistant":
            calls = message.get("tool_calls") or []
            if message.get("tool_calls") == []:
                found.append(f"rule: messages/{at}/tool_calls is empty")
            if not calls and message.get("content") is None and not message.get("refusal"):
                found.append(f"rule: messages/{at} has neither content nor calls")
            open_calls = [call.get("id") for call in calls]
            found += [f"rule: messages/{at}: {text}" for call in calls for text in arguments(call)]
    if open_calls:
        found.append(f"rule: the results of {open_calls} are missing")
    return found


def arguments(call: dict) -> list[str]:
    try:
        if isinstance(json.loads(call.get("function", {}).get("arguments", "")), dict):
            return []
        return [f"the arguments of {call.get('id')!r} are no JSON object"]
    except (TypeError, ValueError):
        return [f"the arguments of {call.get('id')!r} are not JSON text"]


GOOD = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ],
    "tools": [{"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}],
}
BAD = {
    "no model": lambda body: body.pop("model"),
    "no messages": lambda body: body.pop("messages"),
    "an unknown key": lambda body: body.update(nonsense=1),
    "an unknown key in a message": lambda body: body["messages"][2].update(status="ok"),
    "a number as text": lambda body: body.update(max_completion_tokens="9"),
    "a call without a result": lambda body: body["messages"].pop(),
    "a result without a call": lambda body: body["messages"].pop(1),
    "a call without a type": lambda body: body["messages"][1]["tool_calls"][0].pop("type"),
    "arguments as an object": lambda body: body["messages"][1]["tool_calls"][0]["function"].update(arguments={}),
    "broken arguments": lambda body: body["messages"][1]["tool_calls"][0]["function"].update(arguments="{"),
    "a tool of another wire": lambda body: body["tools"].append({"name": "w", "input_schema": {"type": "object"}}),
    "two tools of one name": lambda body: body["tools"].append(body["tools"][0]),
}

if __name__ == "__main__":
    golden.main(complaints, GOOD, BAD)
