"""Where a translation may differ from its original: what LiteLLM loses or adds, and what our own wires say differently on purpose.

Each line changes what is expected (rarely: takes off what was added) and says why. A line that changes nothing any more is an error, so
that the table stays as short as the truth.
"""

import json
from dataclasses import dataclass
from typing import Callable

Reading = dict


@dataclass(frozen=True)
class Loss:
    # a step of a route, or all of it
    route: tuple[str, ...]
    why: str
    change: Callable[[Reading, Reading], None]
    # the one golden request that it is about
    only: str | None = None


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


def hosted_as_text(expected: Reading, got: Reading) -> None:
    expected["conversation"] = [item for item in expected["conversation"] if "hosted" not in item]
    got["conversation"] = [item for item in got["conversation"] if not str(item.get("assistant")).startswith(HOSTED)]


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


def open_schemas(expected: Reading, _got: Reading) -> None:
    for tool in expected.get("tools", []):
        tool["schema"] = _open(tool["schema"])


def _open(schema):
    if isinstance(schema, list):
        return [_open(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _open(part) for key, part in schema.items() if key != "additionalProperties"}


# --- between our own wires ---------------------------------------------------------------------------------------------------------

BLANK_OF_OURS = {"user": "(empty message)"}


def blanks_marked(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [BLANK_OF_OURS, BLANK_OF_OURS, *got["conversation"]]


def blanks_unmarked(_expected: Reading, got: Reading) -> None:
    got["conversation"] = [item for item in got["conversation"] if item != BLANK_OF_OURS]


def without_both(*keys: str):
    def change(expected: Reading, got: Reading) -> None:
        for key in keys:
            expected.pop(key, None)
            got.pop(key, None)

    return change


# --- the table ---------------------------------------------------------------------------------------------------------------------

TO_ANTHROPIC = ("openai_chat", "anthropic")
TO_GEMINI = ("openai_chat", "gemini")
TO_RESPONSES = ("openai_chat", "openai_responses")
FROM_ANTHROPIC = ("anthropic", "openai_chat")
FROM_RESPONSES = ("openai_responses", "openai_chat")
ANTHROPIC_TO_GEMINI = ("anthropic", "openai_chat", "gemini")

LOSSES = [
    Loss(TO_ANTHROPIC, "Anthropic wants a limit in every request: LiteLLM fills in the model's own", filled_limit),
    Loss(TO_ANTHROPIC, "a later system message becomes a note from the user", later_system_as_note),
    Loss(TO_ANTHROPIC, "the name of a file is not carried", of_items(nameless)),
    Loss(TO_ANTHROPIC, "Anthropic takes no sound", dropped(is_sound)),
    Loss(TO_ANTHROPIC, "reasoning without a signature is not taken", dropped(lambda item: "thinking" in item)),
    Loss(TO_ANTHROPIC, "Anthropic refuses a stop text of white space", visible_stops),
    Loss(TO_ANTHROPIC, "calls in the past without any tool now: LiteLLM invents a tool", dummy_tool),
    Loss(TO_ANTHROPIC, "one call at a time is a flag of the choice, which then has to be there", choice_beside_flag),
    Loss(TO_ANTHROPIC, "a blank message becomes a text of LiteLLM's", placeholders),
    Loss(TO_GEMINI, "Gemini has one place for system texts, before everything", system_first),
    Loss(TO_GEMINI, "the name of a file is not carried", of_items(nameless)),
    Loss(TO_GEMINI, "Gemini cannot be told to make one call at a time", without("one call at a time")),
    Loss(TO_GEMINI, "a schema is put into Gemini's older form, which knows no additionalProperties", open_schemas),
    Loss(TO_RESPONSES, "Responses takes no sound", dropped(is_sound)),
    Loss(TO_RESPONSES, "Responses has no stop texts", without("stop")),
    Loss(TO_RESPONSES, "reasoning in the dialect of other vendors is not taken", dropped(lambda item: "thinking" in item)),
    Loss(FROM_ANTHROPIC, "OpenAI has no mark for a failed result", of_items(succeeded)),
    Loss(FROM_ANTHROPIC, "the name of a file is not carried", of_items(nameless)),
    Loss(FROM_ANTHROPIC, "a document of plain text is left out", dropped(is_text_file)),
    Loss(FROM_ANTHROPIC, "what a tool of Anthropic's own did has no place in chat", dropped(lambda item: "hosted" in item)),
    Loss(FROM_ANTHROPIC, "LiteLLM forgets the flag for one call at a time", without("one call at a time")),
    Loss(FROM_RESPONSES, "what a tool of OpenAI's own did becomes a text", hosted_as_text),
    Loss(FROM_RESPONSES, "a document in a result becomes JSON text", of_items(document_as_text)),
    Loss(ANTHROPIC_TO_GEMINI, "the blocks of one system text are joined", joined_system),
    Loss(ANTHROPIC_TO_GEMINI, "reasoning that was sealed has no text to carry", dropped(lambda item: item.get("thinking") == "Emw=")),
]

# What our own wires say differently of one conversation, on purpose.
APART = [
    Loss(TO_ANTHROPIC, "only Anthropic has to be told a limit: each fills in its own", limit_of_translation),
    Loss(FROM_ANTHROPIC, "only Anthropic has to be told a limit: we send none to the others", limit_of_translation),
    Loss(TO_ANTHROPIC, "OpenAI has no mark for a failed result", of_items(succeeded)),
    Loss(TO_GEMINI, "OpenAI has no mark for a failed result", of_items(succeeded)),
    Loss(TO_RESPONSES, "Responses refuses blank messages: ours says that one was", blanks_marked, only="blank_messages"),
    Loss(FROM_RESPONSES, "Responses refuses blank messages: ours says that one was", blanks_unmarked, only="blank_messages"),
    Loss(FROM_RESPONSES, "Responses has no stop texts", without("stop")),
    Loss(ANTHROPIC_TO_GEMINI, "the two tests ask for other temperatures", without_both("temperature", "top_p"), only="text"),
]

# Golden requests that share a name and not a conversation.
OTHER_CONVERSATIONS = {
    # a chat cannot hold pictures in results: they follow in a message of the user's
    frozenset({"openai_chat", "openai_responses"}): {"media_in_results"},
    frozenset({"anthropic", "gemini"}): {"after_a_switch_of_provider", "tool_choice"},
}


def untranslated(route: tuple[str, ...], meant: Reading) -> str | None:
    """Why LiteLLM cannot translate a body here."""
    addresses = [item for item in meant["conversation"] if is_media(said(item)) and "address" in said(item)]
    if route[-1] == "gemini" and addresses:
        return "LiteLLM would fetch the picture by its address, and this check uses no network"
    return None

