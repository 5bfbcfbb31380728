"""Where a translation may differ from its original: what LiteLLM loses or adds, and what our own wires say differently on purpose.

Each line says what changes and why. A line that changes nothing any more is an error, so that the table stays as short as the truth.
"""

from dataclasses import dataclass
from typing import Callable

import translate_changes as change
from translate_changes import Reading


@dataclass(frozen=True)
class Loss:
    # a step of a route, or all of it
    route: tuple[str, ...]
    why: str
    change: Callable[[Reading, Reading], None]
    # the one golden request that it is about
    only: str | None = None


TO_ANTHROPIC = ("openai_chat", "anthropic")
TO_GEMINI = ("openai_chat", "gemini")
TO_RESPONSES = ("openai_chat", "openai_responses")
FROM_ANTHROPIC = ("anthropic", "openai_chat")
FROM_RESPONSES = ("openai_responses", "openai_chat")
ANTHROPIC_TO_GEMINI = ("anthropic", "openai_chat", "gemini")

LOSSES = [
    Loss(
        TO_ANTHROPIC, "Anthropic wants a limit in every request: LiteLLM fills in the model's own", change.filled_limit
    ),
    Loss(TO_ANTHROPIC, "a later system message becomes a note from the user", change.later_system_as_note),
    Loss(TO_ANTHROPIC, "the name of a file is not carried", change.of_items(change.nameless)),
    Loss(TO_ANTHROPIC, "Anthropic takes no sound", change.dropped(change.is_sound)),
    Loss(TO_ANTHROPIC, "reasoning without a signature is not taken", change.dropped(lambda item: "thinking" in item)),
    Loss(TO_ANTHROPIC, "Anthropic refuses a stop text of white space", change.visible_stops),
    Loss(TO_ANTHROPIC, "calls in the past without any tool now: LiteLLM invents a tool", change.dummy_tool),
    Loss(
        TO_ANTHROPIC,
        "one call at a time is a flag of the choice, which then has to be there",
        change.choice_beside_flag,
    ),
    Loss(TO_ANTHROPIC, "a blank message becomes a text of LiteLLM's", change.placeholders),
    Loss(TO_GEMINI, "Gemini has one place for system texts, before everything", change.system_first),
    Loss(TO_GEMINI, "the name of a file is not carried", change.of_items(change.nameless)),
    Loss(TO_GEMINI, "Gemini cannot be told to make one call at a time", change.without("one call at a time")),
    Loss(
        TO_GEMINI,
        "a schema is put into Gemini's older form: no additionalProperties, null as a flag",
        change.older_schemas,
    ),
    Loss(TO_RESPONSES, "Responses takes no sound", change.dropped(change.is_sound)),
    Loss(TO_RESPONSES, "Responses has no stop texts", change.without("stop")),
    Loss(
        TO_RESPONSES,
        "reasoning in the dialect of other vendors is not taken",
        change.dropped(lambda item: "thinking" in item),
    ),
    Loss(FROM_ANTHROPIC, "OpenAI has no mark for a failed result", change.of_items(change.succeeded)),
    Loss(FROM_ANTHROPIC, "the name of a file is not carried", change.of_items(change.nameless)),
    Loss(FROM_ANTHROPIC, "a document of plain text is left out", change.dropped(change.is_text_file)),
    Loss(
        FROM_ANTHROPIC,
        "what a tool of Anthropic's own did has no place in chat",
        change.dropped(lambda item: "hosted" in item),
    ),
    Loss(FROM_ANTHROPIC, "LiteLLM forgets the flag for one call at a time", change.without("one call at a time")),
    Loss(FROM_RESPONSES, "what a tool of OpenAI's own did becomes a text", change.hosted_as_text),
    Loss(FROM_RESPONSES, "a document in a result becomes JSON text", change.of_items(change.document_as_text)),
    Loss(ANTHROPIC_TO_GEMINI, "the blocks of one system text are joined", change.joined_system),
    Loss(
        ANTHROPIC_TO_GEMINI,
        "reasoning that was sealed has no text to carry",
        change.dropped(lambda item: item.get("thinking") == "Emw="),
    ),
]

# What our own wires say differently of one conversation, on purpose.
SYSTEM = "system texts are joined or apart, and a later one has a place of its own only with OpenAI"
APART = [
    Loss(TO_ANTHROPIC, "only Anthropic has to be told a limit: each fills in its own", change.limit_of_translation),
    Loss(
        FROM_ANTHROPIC, "only Anthropic has to be told a limit: we send none to the others", change.limit_of_translation
    ),
    Loss(TO_ANTHROPIC, "OpenAI has no mark for a failed result", change.of_items(change.succeeded)),
    Loss(TO_GEMINI, "OpenAI has no mark for a failed result", change.of_items(change.succeeded)),
    Loss(
        TO_RESPONSES,
        "Responses refuses blank messages: ours says that one was",
        change.blanks_marked,
        only="blank_messages",
    ),
    Loss(
        FROM_RESPONSES,
        "Responses refuses blank messages: ours says that one was",
        change.blanks_unmarked,
        only="blank_messages",
    ),
    Loss(FROM_RESPONSES, "Responses has no stop texts", change.without("stop")),
    Loss(TO_GEMINI, "Gemini cannot be told to make one call at a time: ours asks for it in words", change.without_hint),
    Loss(
        FROM_ANTHROPIC,
        "one call at a time is a flag of the choice, which then has to be there",
        change.without_auto,
        only="parallel_calls",
    ),
    Loss(
        FROM_ANTHROPIC,
        "thoughts go back to the model that had them, and to no other",
        change.without_thinking,
        only="provider_switch",
    ),
    Loss(TO_GEMINI, "only Gemini takes a picture of the assistant's", change.picture_left_out, only="provider_switch"),
    Loss(TO_ANTHROPIC, SYSTEM, change.later_system, only="several_system_messages"),
    Loss(FROM_ANTHROPIC, SYSTEM, change.later_system, only="several_system_messages"),
    Loss(TO_GEMINI, SYSTEM, change.later_system_first, only="several_system_messages"),
    Loss(
        ANTHROPIC_TO_GEMINI,
        "the two tests ask for other temperatures",
        change.without_both("temperature", "top_p"),
        only="text",
    ),
]

# Golden requests that share a name and not a conversation.
OTHER_CONVERSATIONS = {
    # a chat cannot hold pictures in results: they follow in a message of the user's
    ("openai", "media_in_results"),
    ("others", "after_a_switch_of_provider"),
    ("others", "tool_choice"),
}


def untranslated(route: tuple[str, ...], meant: Reading) -> str | None:
    """Why LiteLLM cannot translate a body here."""
    addresses = [
        item for item in meant["conversation"] if change.is_media(change.said(item)) and "address" in change.said(item)
    ]
    if route[-1] == "gemini" and addresses:
        return "LiteLLM would fetch the picture by its address, and this check uses no network"
    return None
