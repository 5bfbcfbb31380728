"""Judges JSON by the request types of a vendor's own Python package: strict types, unknown keys refused.

Those types are TypedDicts, meant for type checkers; two of their habits have to be undone before pydantic can judge by them.
"""

import collections.abc
import importlib
import json
import sys
import typing

import typing_extensions
from pydantic import ConfigDict, TypeAdapter, ValidationError

STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def load(package: str, module: str):
    """Imports `module` of an SDK so that its TypedDicts are strict and closed."""
    # pydantic looks into an Iterable only when it is iterated, which is never: a List is looked into at once
    real, typing.Iterable = typing.Iterable, typing.List
    try:
        loaded = importlib.import_module(module)
    finally:
        typing.Iterable = real
    for name, each in list(sys.modules.items()):
        if not name.startswith(f"{package}.types"):
            continue
        if getattr(each, "Iterable", None) is collections.abc.Iterable:
            each.Iterable = typing.List
        # a TypedDict takes its configuration from itself only
        for value in vars(each).values():
            if typing.is_typeddict(value) or typing_extensions.is_typeddict(value):
                value.__pydantic_config__ = STRICT
    return loaded


class Judge:
    """Judges bodies by one type."""

    def __init__(self, kind):
        self.adapter = TypeAdapter(kind)

    def complaints(self, body) -> list[str]:
        try:
            self.adapter.validate_json(json.dumps(body))
        except ValidationError as error:
            return [f"types: {text}" for text in _shortest(error)]
        return []


def _shortest(error: ValidationError) -> list[str]:
    """A union reports every branch; keep, for each place, the branch that fits best (right tag, fewest complaints)."""
    places: dict[tuple, dict[tuple, list]] = {}
    for complaint in error.errors(include_url=False, include_input=False):
        path = tuple(step for step in complaint["loc"] if not _is_type_name(step))
        branch = tuple(step for step in complaint["loc"] if isinstance(step, str) and step[:1].isupper())
        places.setdefault(path[:2], {}).setdefault(branch, []).append((path, complaint))
    texts = []
    for branches in places.values():
        best = min(branches.values(), key=lambda found: (sum(_wrong_tag(*each) for each in found), len(found)))
        texts += [f"{'/'.join(map(str, path)) or '<root>'}: {complaint['msg']}" for path, complaint in best]
    return list(dict.fromkeys(texts))[:4]


def _is_type_name(step) -> bool:
    """pydantic mixes the names of types into the path to a value."""
    marks = ("list[", "function", "lax", "literal[", "nullable", "union", "tagged", "dict[", "str", "constrained-str")
    return isinstance(step, str) and (step[:1].isupper() or step.startswith(marks))


def _wrong_tag(path: tuple, complaint: dict) -> bool:
    return path[-1:] in (("type",), ("role",)) and complaint["type"] in ("literal_error", "missing")
