"""Ways in which a reading of a request is changed by a translation; translate_losses.py says where each happens, and why.

A change takes what is expected and what LiteLLM made. Most change the first only.
"""

import json
from typing import Callable

Reading = dict


# --- ways to change a reading ------------------------------------------------------------------------------------------------------


def without(*keys: str):
    def change(expected: Reading, _got: Reading) -> None:
        for key in keys:
            expected.pop(key, None)

    return change


def of_items(change_item: Callable[[dict], list[dict]]):
    """Every item of the conversation becomes none, one or several."""

    def change(expected: Reading, _got: Reading) -> None:
        expected["conversation"] = [new for item in expected["conversation"] for new in change_item(item)]

    return change


def said(item: dict):
    return next(iter(item.values()))


def nameless(item: dict) -> list[dict]:
    who, what = next(iter(item.items()))
    return [{who: {key: value for key, value in what.items() if key != "name"}}] if is_media(what) else [item]


def is_media(part) -> bool:
    return isinstance(part, dict) and ("media" in part or "address" in part)


def is_sound(item: dict) -> bool:
    return is_media(said(item)) and said(item).get("media", "").startswith("audio/")


def dropped(doomed: Callable[[dict], bool]):
    return of_items(lambda item: [] if doomed(item) else [item])


def succeeded(item: dict) -> list[dict]:
    return [{key: value for key, value in item.items() if key != "failed"}]


# --- from OpenAI's chat completions to Anthropic -----------------------------------------------------------------------------------

REMINDER = "Operator note (not from the user): the following was originally a mid-conversation system-role reminder."
BLANK = "[System: Empty message content sanitised to satisfy protocol]"
DUMMY = {"name": "dummy_tool", "description": "This is a dummy tool call", "schema": {"type": "object"}}


def filled_limit(expected: Reading, got: Reading) -> None:
    if "max tokens" not in expected and got.get("max tokens", 0) > 0:
        expected["max tokens"] = got["max tokens"]


def limit_of_translation(expected: Reading, got: Reading) -> None:
    if "max tokens" in got:
        expected["max tokens"] = got["max tokens"]


def later_system_as_note(expected: Reading, _got: Reading) -> None:
    items, begun = [], False
    for item in expected["conversation"]:
        begun |= "system" not in item
        items += [{"user": REMINDER}, {"user": item["system"]}] if begun and "system" in item else [item]
    expected["conversation"] = items


def visible_stops(expected: Reading, _got: Reading) -> None:
    if "stop" in expected:
        expected["stop"] = [text for text in expected["stop"] if text.strip()]


def dummy_tool(expected: Reading, _got: Reading) -> None:
    if "tools" not in expected and any("call" in item for item in expected["conversation"]):
        expected["tools"] = [DUMMY]


def choice_beside_flag(expected: Reading, _got: Reading) -> None:
    if "one call at a time" in expected:
        expected.setdefault("tool choice", "auto")


def placeholders(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [item for item in got["conversation"] if said(item) != BLANK]


# --- from Anthropic and from Responses ---------------------------------------------------------------------------------------------

HOSTED = "Hosted web search: "


def hosted_as_text(_expected: Reading, got: Reading) -> None:
    items: list[dict] = []
    for item in got["conversation"]:
        text = item.get("assistant")
        if isinstance(text, str) and text.startswith(HOSTED):
            call, end = json.JSONDecoder().raw_decode(text, len(HOSTED))
            items += [{"hosted": call["type"]}, *([{"assistant": text[end:]}] if text[end:] else [])]
        else:
            items.append(item)
    got["conversation"] = items


def document_as_text(item: dict) -> list[dict]:
    if "holds" not in item:
        return [item]
    return [{**item, "holds": [_document_as_text(part) for part in item["holds"]]}]


def _document_as_text(part):
    if not is_media(part) or not part.get("name"):
        return part
    data = f"data:{part['media']};base64,{part['data']}"
    return json.dumps([{"type": "input_file", "filename": part["name"], "file_data": data}])


def is_text_file(item: dict) -> bool:
    return is_media(said(item)) and said(item).get("media") == "text/plain"


# --- to Gemini ---------------------------------------------------------------------------------------------------------------------


def system_first(expected: Reading, _got: Reading) -> None:
    expected["conversation"].sort(key=lambda item: "system" not in item)


def joined_system(expected: Reading, _got: Reading) -> None:
    items = expected["conversation"]
    texts = [item["system"] for item in items if "system" in item]
    if texts:
        expected["conversation"] = [{"system": "".join(texts)}, *(item for item in items if "system" not in item)]


def older_schemas(expected: Reading, _got: Reading) -> None:
    for tool in expected.get("tools", []):
        tool["schema"] = _older(tool["schema"])


def _older(schema):
    if isinstance(schema, list):
        return [_older(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    match schema:
        case {"type": [str(kind), "null"]}:
            rest = {key: part for key, part in schema.items() if key != "type"}
            schema = {**rest, "anyOf": [{"type": kind, "nullable": True}]}
    return {key: _older(part) for key, part in schema.items() if key != "additionalProperties"}


# --- between our own wires ---------------------------------------------------------------------------------------------------------

BLANK_OF_OURS = {"user": "(empty message)"}


def blanks_marked(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [BLANK_OF_OURS, BLANK_OF_OURS, *got["conversation"]]


def blanks_unmarked(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [item for item in got["conversation"] if item != BLANK_OF_OURS]


ONE_CALL = {"system": "Call at most one function in each reply."}
LEFT_OUT = "[image `map.png`: left out, it cannot be sent to this model]"


def without_hint(expected: Reading, _got: Reading) -> None:
    expected["conversation"] = [item for item in expected["conversation"] if item != ONE_CALL]


def without_auto(_expected: Reading, got: Reading) -> None:
    if got.get("tool choice") == "auto":
        del got["tool choice"]


def without_thinking(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [item for item in got["conversation"] if "thinking" not in item]


def picture_left_out(expected: Reading, _got: Reading) -> None:
    items = expected["conversation"]
    at = next(at for at, item in enumerate(items) if is_media(item.get("assistant")))
    items[at - 1 : at + 1] = [{"assistant": items[at - 1]["assistant"] + LEFT_OUT}]


def later_system(expected: Reading, got: Reading) -> None:
    """Where a wire has no later system messages, ours and LiteLLM's mark a user's text in their own ways; both are read as what they stand for."""
    for reading in (expected, got):
        items: list[dict] = []
        for item in reading["conversation"]:
            text = item.get("system") or (item.get("user") if items and items[-1] == {"user": REMINDER} else None)
            if isinstance(item.get("user"), str) and item["user"].startswith("<system>"):
                text = item["user"].removeprefix("<system>").removesuffix("</system>")
            if items and items[-1] == {"user": REMINDER}:
                items.pop()
            if text and items and "system" in items[-1]:
                items[-1] = {"system": f"{items[-1]['system']}\n\n{text}"}
            else:
                items.append({"system": text} if text else item)
        reading["conversation"] = items


def later_system_first(expected: Reading, got: Reading) -> None:
    later_system(expected, got)
    system_first(expected, got)
    system_first(got, expected)
    later_system(expected, got)


def without_both(*keys: str):
    def change(expected: Reading, got: Reading) -> None:
        for key in keys:
            expected.pop(key, None)
            got.pop(key, None)

    return change
