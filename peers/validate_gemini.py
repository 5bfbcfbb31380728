#!/usr/bin/env python3
"""Would Gemini take these generateContent requests?  validate_gemini.py REQUEST.json…

Two judges: the types of the official `google-genai` package, which refuse unknown members, and the rules that the API enforces
although no type says them.
"""

import json

import golden
from google.genai import types
from pydantic import ValidationError

# The package builds a request from its parts, so there is no type of the whole.
BODY = {
    "contents": [types.Content],
    "systemInstruction": types.Content,
    "tools": [types.Tool],
    "toolConfig": types.ToolConfig,
    "safetySettings": [types.SafetySetting],
    "generationConfig": types.GenerationConfig,
    "cachedContent": str,
    "serviceTier": str,
    "store": bool,
    "model": str,
}


def complaints(body: dict, name: str) -> list[str]:
    found = [] if body.get("contents") else ["types: contents is missing"]
    for key, value in body.items():
        kind = BODY.get(key)
        if kind is None:
            found.append(f"types: {key} is no member of a request")
        elif not isinstance(kind, list):
            found += typed(kind, value, key)
        elif not isinstance(value, list):
            found.append(f"types: {key} is no list")
        else:
            for at, each in enumerate(value):
                found += typed(kind[0], each, f"{key}/{at}")
    # the rules take the shape for granted
    return found or turns(body["contents"]) + choices(body)


def typed(kind, value, at: str) -> list[str]:
    if not hasattr(kind, "model_validate_json"):
        return [] if isinstance(value, kind) else [f"types: {at} is no {kind.__name__}"]
    try:
        kind.model_validate_json(json.dumps(value))
    except ValidationError as error:
        each = error.errors(include_url=False, include_input=False)[:4]
        return [f"types: {at}/{'/'.join(map(str, found['loc']))}: {found['msg']}" for found in each]
    return []


def turns(contents: list[dict]) -> list[str]:
    """Roles in turn, the user first and last; every call answered in the very next content, in order."""
    found, asked = [], []
    for at, content in enumerate(contents):
        parts, role = content.get("parts") or [], content.get("role")
        if role != ("model" if at % 2 else "user"):
            found.append(f"rule: contents/{at} is of role {role!r}")
        if not parts or any(not part for part in parts):
            found.append(f"rule: contents/{at} has an empty part, or none")
        if any(part.get("text") == "" and "thoughtSignature" not in part for part in parts):
            found.append(f"rule: contents/{at} has an empty text")
        answers = [names(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if answers != asked:
            found.append(f"rule: contents/{at}: the responses {answers} do not match the calls {asked}")
        asked = [names(part["functionCall"]) for part in parts if "functionCall" in part]
    if len(contents) % 2 == 0:
        found.append("rule: the last content is not the user's")
    return found


def names(member: dict) -> tuple:
    return member.get("id"), member.get("name")


def choices(body: dict) -> list[str]:
    declared = [each["name"] for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []]
    found = [] if len(set(declared)) == len(declared) else ["rule: two functions have one name"]
    chosen = ((body.get("toolConfig") or {}).get("functionCallingConfig") or {}).get("allowedFunctionNames") or []
    return found + [f"rule: {name!r} may be called and is not declared" for name in chosen if name not in declared]


GOOD = {
    "contents": [
        {"role": "user", "parts": [{"text": "weather?"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "w", "args": {}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "w", "response": {"output": "sunny"}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "w", "parametersJsonSchema": {"type": "object"}}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["w"]}},
    "generationConfig": {"maxOutputTokens": 9},
}
BAD = {
    "no contents": lambda body: body.pop("contents"),
    "an unknown member": lambda body: body.update(nonsense=1),
    "an unknown member of a part": lambda body: body["contents"][0]["parts"][0].update(status="ok"),
    "a text for a number": lambda body: body["generationConfig"].update(maxOutputTokens="many"),
    "arguments as text": lambda body: body["contents"][1]["parts"][0]["functionCall"].update(args="{}"),
    "a call without a response": lambda body: body["contents"].pop(),
    "a response without a call": lambda body: body["contents"].pop(1),
    "a response to another call": lambda body: body["contents"][2]["parts"][0]["functionResponse"].update(id="c2"),
    "an empty text": lambda body: body["contents"][0]["parts"][0].update(text=""),
    "the model first": lambda body: body["contents"].pop(0),
    "a role of another wire": lambda body: body["contents"][1].update(role="assistant"),
    "a tool of another wire": lambda body: body["tools"].append({"type": "function", "function": {"name": "w"}}),
    "a choice that is not declared": lambda body: body.pop("tools"),
}

if __name__ == "__main__":
    golden.main(complaints, GOOD, BAD)
