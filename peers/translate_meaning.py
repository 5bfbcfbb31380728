"""What a request means, whatever its wire: the conversation in order, the tools, and the options that steer the reply.

A reading holds no ids: a result says the how-manieth call it answers. Message boundaries do not count either, because the wires draw them
differently; the order of everything in the messages does.
"""

import json
from typing import Callable


def reading(wire: str, body: dict) -> dict:
    """The meaning of a request body of this wire, as plain JSON."""
    conversation = Conversation()
    options = READERS[wire](body, conversation)
    meant = {"conversation": conversation.items, **options}
    return {key: value for key, value in meant.items() if value is not False and value not in (None, [], {})}


class Conversation:
    """What was said and done, in order."""

    def __init__(self):
        self.items: list[dict] = []
        self._calls: list[tuple] = []
        self._open: list[int] = []

    def say(self, who: str, *parts) -> None:
        """Texts are text, media are dicts. Nothing said is nothing said; an assistant's texts in a row are one, however they are cut."""
        for part in filter(None, parts):
            before = self.items[-1].get("assistant") if self.items else None
            if who == "assistant" and isinstance(part, str) and isinstance(before, str):
                self.items[-1] = {who: before + part}
            else:
                self.items.append({who: part})

    def call(self, identity, name: str, arguments) -> None:
        self._open.append(len(self._calls))
        self._calls.append((identity, name))
        self.items.append({"call": name, "arguments": arguments})

    def result(self, identity, parts: list, failed: bool = False, name: str | None = None) -> None:
        """Without an id, a result answers the first open call of its name; an id that comes again means its latest call."""
        if identity:
            fit = [at for at in reversed(self._open) if self._calls[at][0] == identity]
        else:
            fit = [at for at in self._open if self._calls[at][1] == name]
        if fit:
            self._open.remove(fit[0])
        item = {"result of call": fit[0] if fit else None, "holds": joined(parts)}
        self.items.append({**item, "failed": True} if failed else item)


def joined(parts: list) -> list:
    """Texts side by side in one result are one text."""
    whole: list = []
    for part in filter(None, parts):
        if whole and isinstance(part, str) and isinstance(whole[-1], str):
            whole[-1] += part
        else:
            whole.append(part)
    return whole


def media(kind: str | None, data: str | None = None, url: str | None = None, name: str | None = None) -> dict:
    """A picture, sound or document: its bytes or its address. A data: address is bytes."""
    if url and url.startswith("data:"):
        kind, data = url.removeprefix("data:").split(";base64,", 1)
    if data is not None:
        found = {"media": kind, "data": data}
    else:
        found = {"address": url}
    return {**found, "name": name} if name else found


def decoded(arguments) -> object:
    """Arguments that came as JSON text; what is no JSON stays a text, which no object equals."""
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


def each(content) -> list:
    """Content is a text, a list of blocks, or absent."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def function(name: str, description: str | None, schema: dict | None) -> dict:
    """An object without properties is written in three ways: without any schema, with `properties: {}`, and without that."""
    schema = dict(schema or {"type": "object"})
    if schema.get("properties") == {}:
        del schema["properties"]
    return {"name": name, "description": description or "", "schema": schema}


# --- OpenAI chat completions -------------------------------------------------------------------------------------------------------


def openai_chat(body: dict, conversation: Conversation) -> dict:
    for message in body["messages"]:
        role = message["role"]
        parts = [_chat_part(block) for block in each(message.get("content"))]
        if role == "tool":
            conversation.result(message["tool_call_id"], parts)
            continue
        conversation.say("thinking", *_chat_thinking(message))
        conversation.say({"developer": "system"}.get(role, role), *parts)
        for call in message.get("tool_calls") or []:
            conversation.call(call["id"], call["function"]["name"], decoded(call["function"]["arguments"]))
    tools = [tool.get("function") for tool in body.get("tools") or []]
    choice = body.get("tool_choice")
    return {
        "tools": [function(tool["name"], tool.get("description"), tool.get("parameters")) for tool in tools if tool],
        "tool choice": {"only": choice["function"]["name"]} if isinstance(choice, dict) else choice,
        "one call at a time": body.get("parallel_tool_calls") is False,
        "max tokens": body.get("max_completion_tokens") or body.get("max_tokens"),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "stop": [stop] if isinstance(stop := body.get("stop"), str) else stop,
    }


def _chat_part(block: dict):
    match block:
        case {"type": "text", "text": text}:
            return text
        case {"type": "image_url", "image_url": {"url": url}}:
            return media("image/*", url=url)
        case {"type": "input_audio", "input_audio": {"data": data, "format": kind}}:
            return media(f"audio/{kind}", data)
        case {"type": "file", "file": file}:
            return media(None, url=file.get("file_data") or file.get("file_id"), name=file.get("filename"))
    return {"not known": block}


def _chat_thinking(message: dict) -> list[str]:
    blocks = message.get("thinking_blocks") or []
    return [block.get("thinking") or block.get("data") for block in blocks] or [message.get("reasoning_content")]


# --- OpenAI responses --------------------------------------------------------------------------------------------------------------


def openai_responses(body: dict, conversation: Conversation) -> dict:
    conversation.say("system", body.get("instructions"))
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                role = {"developer": "system"}.get(item["role"], item["role"])
                conversation.say(role, *map(_responses_part, each(item.get("content"))))
            case "function_call":
                conversation.call(item["call_id"], item["name"], decoded(item["arguments"]))
            case "function_call_output":
                conversation.result(item["call_id"], [_responses_part(part) for part in each(item["output"])])
            case "reasoning":
                conversation.say("thinking", *(part["text"] for part in item["summary"]))
            case kind:
                conversation.items.append({"hosted": kind})
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    return {
        "tools": [
            function(tool["name"], tool.get("description"), tool.get("parameters"))
            for tool in tools
            if tool["type"] == "function"
        ],
        "tool choice": {"only": choice["name"]} if isinstance(choice, dict) else choice,
        "one call at a time": body.get("parallel_tool_calls") is False,
        "max tokens": body.get("max_output_tokens"),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
    }


def _responses_part(block: dict):
    match block:
        case {"type": "text" | "input_text" | "output_text", "text": text}:
            return text
        case {"type": "input_image", "image_url": url}:
            return media("image/*", url=url)
        case {"type": "input_file"}:
            return media(None, url=block.get("file_data") or block.get("file_url"), name=block.get("filename"))
    return {"not known": block}


# --- Anthropic messages ------------------------------------------------------------------------------------------------------------


def anthropic(body: dict, conversation: Conversation) -> dict:
    conversation.say("system", *(block["text"] for block in each(body.get("system"))))
    for message in body["messages"]:
        for block in each(message["content"]):
            match block["type"]:
                case "tool_use":
                    conversation.call(block["id"], block["name"], block["input"])
                case "tool_result":
                    parts = [_anthropic_part(part) for part in each(block.get("content"))]
                    conversation.result(block["tool_use_id"], parts, block.get("is_error") is True)
                case "thinking" | "redacted_thinking":
                    conversation.say("thinking", block.get("thinking") or block.get("data"))
                case "server_tool_use" | "web_search_tool_result":
                    conversation.items.append({"hosted": block["type"]})
                case _:
                    conversation.say(message["role"], _anthropic_part(block))
    choice = body.get("tool_choice") or {}
    tools = [tool for tool in body.get("tools") or [] if tool.get("type", "custom") == "custom"]
    kinds = {"any": "required", "tool": {"only": choice.get("name")}}
    return {
        "tools": [function(tool["name"], tool.get("description"), tool["input_schema"]) for tool in tools],
        "tool choice": kinds.get(choice.get("type"), choice.get("type")),
        "one call at a time": choice.get("disable_parallel_tool_use", False),
        "max tokens": body["max_tokens"],
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "stop": body.get("stop_sequences"),
    }


def _anthropic_part(block: dict):
    match block:
        case {"type": "text", "text": text}:
            return text
        case {"type": "image" | "document", "source": {"type": "url", "url": url}}:
            return media(None, url=url, name=block.get("title"))
        case {"type": "image" | "document", "source": source}:
            return media(source["media_type"], source["data"], name=block.get("title"))
    return {"not known": block}


# --- Gemini generateContent --------------------------------------------------------------------------------------------------------


def gemini(body: dict, conversation: Conversation) -> dict:
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    conversation.say("system", *(part["text"] for part in system.get("parts", [])))
    for content in body["contents"]:
        who = {"model": "assistant"}.get(content["role"], content["role"])
        for part in content["parts"]:
            call, answer = _either(part, "functionCall"), _either(part, "functionResponse")
            if call:
                conversation.call(call.get("id"), call["name"], call.get("args") or {})
            elif answer:
                failed, parts = _gemini_answer(answer)
                conversation.result(answer.get("id"), parts, failed, answer["name"])
            elif part.get("thought"):
                conversation.say("thinking", part.get("text"))
            elif _either(part, "executableCode") or _either(part, "codeExecutionResult"):
                conversation.items.append({"hosted": next(iter(part))})
            else:
                conversation.say(who, _gemini_part(part))
    config = body.get("generationConfig") or {}
    calling = ((body.get("toolConfig") or {}).get("functionCallingConfig")) or {}
    names = _either(calling, "allowedFunctionNames") or []
    mode = {"ANY": "required", "AUTO": "auto", "NONE": "none", None: None}[calling.get("mode")]
    declared = [tool for tools in body.get("tools") or [] for tool in _either(tools, "functionDeclarations") or []]
    return {
        "tools": [
            function(tool["name"], tool.get("description"), tool.get("parametersJsonSchema") or tool.get("parameters"))
            for tool in declared
        ],
        "tool choice": {"only": names[0]} if len(names) == 1 else mode,
        "max tokens": _either(config, "maxOutputTokens"),
        "temperature": config.get("temperature"),
        "top_p": _either(config, "topP"),
        "stop": _either(config, "stopSequences"),
    }


def _either(holder: dict, key: str):
    """Gemini takes its keys in both spellings, and LiteLLM mixes them."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    return holder.get(key, holder.get(snake))


def _gemini_answer(answer: dict) -> tuple[bool, list]:
    response, inside = answer["response"], [_gemini_part(part) for part in answer.get("parts", [])]
    match response:
        case {"output": str(text)} | {"content": str(text)}:
            return False, [text, *inside]
        case {"error": str(text)}:
            return True, [text, *inside]
    # LiteLLM sends a result that is a JSON object as that object
    return False, [json.dumps(response, ensure_ascii=False), *inside]


def _gemini_part(part: dict):
    if inline := _either(part, "inlineData"):
        return media(_either(inline, "mimeType"), inline["data"])
    if file := _either(part, "fileData"):
        return media(None, url=_either(file, "fileUri"))
    return part["text"] if "text" in part else {"not known": part}


READERS: dict[str, Callable[[dict, Conversation], dict]] = {
    "openai_chat": openai_chat,
    "openai_compatible": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
}
