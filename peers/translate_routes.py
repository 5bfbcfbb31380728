"""LiteLLM as a translator: the functions inside it that turn a body of one wire into one of another, without a server or a network.

They are not LiteLLM's public interface, so its version is pinned. Its way from Gemini to the others is not taken: it drops the ids of
calls, gives two parallel results of one function to the wrong calls, and leaves out every picture.
"""

import copy
import json
import logging
import os
import socket
import types
from typing import Callable

# before the import: otherwise it asks the network for a table of prices
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from litellm.completion_extras.litellm_responses_transformation.transformation import (
    LiteLLMResponsesTransformationHandler,
)
from litellm.llms.anthropic.chat.transformation import AnthropicConfig
from litellm.llms.anthropic.pass_through.adapters.transformation import LiteLLMAnthropicMessagesAdapter
from litellm.llms.vertex_ai.gemini.transformation import transform_request_body
from litellm.responses.litellm_completion_transformation.transformation import LiteLLMCompletionResponsesConfig

litellm.drop_params = True
litellm.suppress_debug_info = True
logging.getLogger("LiteLLM").setLevel(logging.ERROR)

# what a translation is asked to carry beside the messages; how hard a model thinks is told in too many ways to compare
CARRIED = (
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
)
CLAUDE, GEMINI, GPT = "claude-sonnet-4-5", "gemini-3-pro-preview", "gpt-5.4"


def no_network() -> None:
    """LiteLLM fetches pictures by their address for some vendors; here it may not."""

    def refused(*_, **__):
        raise OSError("this check uses no network")

    socket.socket.connect = refused
    socket.getaddrinfo = refused


def translate(route: tuple[str, ...], body: dict) -> dict:
    """Takes a body along the wires of a route; the body itself stays as it is."""
    for step in zip(route, route[1:]):
        body = _plain(STEPS[step](copy.deepcopy(body)))
    return body


def _plain(made):
    """LiteLLM mixes dicts with models of its own."""
    return json.loads(json.dumps(made, default=lambda value: value.model_dump(exclude_none=True)))


def _carried(body: dict) -> dict:
    return {key: value for key, value in body.items() if key in CARRIED}


def _options(model: str, vendor: str, body: dict) -> dict:
    return litellm.utils.get_optional_params(model=model, custom_llm_provider=vendor, **_carried(body))


def _chat_to_anthropic(body: dict):
    return AnthropicConfig().transform_request(
        model=CLAUDE,
        messages=body["messages"],
        optional_params=_options(CLAUDE, "anthropic", body),
        litellm_params={},
        headers={},
    )


def _chat_to_gemini(body: dict):
    return transform_request_body(
        model=GEMINI,
        messages=body["messages"],
        optional_params=_options(GEMINI, "gemini", body),
        custom_llm_provider="gemini",
        litellm_params={},
        cached_content=None,
    )


def _chat_to_responses(body: dict):
    made = LiteLLMResponsesTransformationHandler().transform_request(
        model=GPT,
        messages=body["messages"],
        optional_params=_carried(body),
        litellm_params={},
        headers={},
        litellm_logging_obj=types.SimpleNamespace(),
    )
    del made["litellm_logging_obj"]
    return made


def _anthropic_to_chat(body: dict):
    made, _names = LiteLLMAnthropicMessagesAdapter().translate_anthropic_to_openai(anthropic_message_request=body)
    return made


def _responses_to_chat(body: dict):
    return LiteLLMCompletionResponsesConfig.transform_responses_api_request_to_chat_completion_request(
        model=body.pop("model"), input=body.pop("input"), responses_api_request=body
    )


STEPS: dict[tuple[str, str], Callable[[dict], object]] = {
    ("openai_chat", "anthropic"): _chat_to_anthropic,
    ("openai_chat", "gemini"): _chat_to_gemini,
    ("openai_chat", "openai_responses"): _chat_to_responses,
    ("anthropic", "openai_chat"): _anthropic_to_chat,
    ("openai_responses", "openai_chat"): _responses_to_chat,
}
