"""Shows that the comparison bites: one conversation is damaged in every way that matters, in every wire, and each damage has to be seen."""

import copy
import json
from typing import Callable, Iterator

import translate_routes as routes


def _call(identity: str, name: str, arguments: str) -> dict:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


KNOWN = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be exact."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is on the shelves?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": "I count.",
            "tool_calls": [
                _call("call_1", "count", '{"shelf": "upper", "above": 1000001}'),
                _call("call_2", "count", '{"shelf": "lower", "above": 2000002}'),
                _call("call_3", "clock", "{}"),
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "seven pears"},
        {"role": "tool", "tool_call_id": "call_2", "content": "nine plums"},
        {"role": "tool", "tool_call_id": "call_3", "content": "noon"},
        {"role": "assistant", "content": "Pears and plums."},
        {"role": "user", "content": "Now the cellar."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {"type": "object", "properties": properties},
            },
        }
        for name, description, properties in (
            ("count", "Counts fruit.", {"shelf": {"type": "string"}, "above": {"type": "integer"}}),
            ("clock", "Tells the time.", {}),
        )
    ],
    "tool_choice": {"type": "function", "function": {"name": "count"}},
    "max_completion_tokens": 4321,
    "temperature": 0.25,
}


def replaced(*pairs: tuple[str, str]) -> Callable[[dict], dict]:
    """Texts for texts, all at once, anywhere in the body."""

    def damage(body: dict) -> dict:
        whole = json.dumps(body)
        for at, (old, _) in enumerate(pairs):
            whole = whole.replace(old, f"<{at}>")
        for at, (_, new) in enumerate(pairs):
            whole = whole.replace(f"<{at}>", new)
        return json.loads(whole)

    return damage


def lost(mark: str) -> Callable[[dict], dict]:
    """The smallest part of a list that holds this text is gone; where no list holds it, the text is."""

    def damage(body: dict) -> dict:
        body = copy.deepcopy(body)
        inner = [(holder, part) for holder, part in _parts(body) if mark in json.dumps(part)]
        if not inner:
            return replaced((mark, ""))(body)
        holder, part = inner[-1]
        holder.remove(part)
        return body

    return damage


def answers_swapped(first: str, second: str) -> Callable[[dict], dict]:
    """The results that hold these texts have each other's ids; where LiteLLM writes no ids (Gemini), each other's places."""

    def damage(body: dict) -> dict:
        body = copy.deepcopy(body)
        (holder, one, key), (_, other, _) = (_answer(body, mark) for mark in (first, second))
        if key:
            one[key], other[key] = other[key], one[key]
        else:
            at, there = holder.index(one), holder.index(other)
            holder[at], holder[there] = other, one
        return body

    return damage


def _answer(body: dict, mark: str) -> tuple[list, dict, str | None]:
    """The result that holds this text, the list that holds the result, and the key of its id."""
    around = [(holder, part) for holder, part in _parts(body) if isinstance(part, dict) and mark in json.dumps(part)]
    for holder, part in around:
        for key in ("tool_call_id", "tool_use_id", "call_id"):
            if key in part:
                return holder, part, key
    return *around[-1], None


def _parts(value) -> Iterator[tuple[list, object]]:
    """Each part of each list, outer ones first."""
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(value, list):
            yield value, part
        yield from _parts(part)


DAMAGES: dict[str, Callable[[dict], dict]] = {
    "two results are swapped": replaced(("seven pears", "nine plums"), ("nine plums", "seven pears")),
    "two calls are swapped": replaced(
        ("upper", "lower"), ("lower", "upper"), ("1000001", "2000002"), ("2000002", "1000001")
    ),
    "a call is lost": lost("2000002"),
    "a result is lost": lost("nine plums"),
    "two results answer each other's call": answers_swapped("seven pears", "nine plums"),
    "a digit of an argument differs": replaced(("1000001", "1000002")),
    "a whole number is a broken one": replaced(("1000001", "1000001.0")),
    "a call has another name": replaced(("clock", "watch")),
    "the system text is lost": lost("Be exact."),
    "a user's text is lost": lost("Now the cellar."),
    "an assistant's text is lost": lost("Pears and plums."),
    "a picture is lost": lost("iVBORw0KGgo="),
    "a byte of a picture differs": replaced(("iVBORw0KGgo=", "iVBORw0KGgp=")),
    "a tool is lost": lost("Tells the time."),
    "a type in a schema differs": replaced(("integer", "number")),
    "the limit differs": replaced(("4321", "4322")),
    "the temperature differs": replaced(("0.25", "0.5")),
}


def blind_spots(difference: Callable[..., list[str]], ways: list[tuple[str, ...]]) -> int:
    """Damages what goes into each translation and what comes out of it; returns how many damages were not seen, or not done."""
    failures = tried = 0
    for route in ways:
        source = KNOWN if route[0] == "openai_chat" else routes.translate(("openai_chat", route[0]), KNOWN)
        target = routes.translate(route, source)
        if found := difference(route, source):
            print(f"a sound body is not taken for sound: {' → '.join(route)}\n" + "\n".join(found))
            failures += 1
        for name, damage in DAMAGES.items():
            tried += 2
            if same(damage(source), source) or not difference(route, damage(source), ours=target):
                print(f"not seen on the way in: {' → '.join(route)}: {name}")
                failures += 1
            if same(damage(target), target) or not difference(route, source, damage=damage):
                print(f"not seen on the way out: {' → '.join(route)}: {name}")
                failures += 1
    print(f"{tried} damages tried, {failures} judged badly")
    return failures


def same(one: dict, other: dict) -> bool:
    """As JSON: for Python, 1 equals 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
