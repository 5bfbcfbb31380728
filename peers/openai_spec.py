"""Judges a request by OpenAI's own OpenAPI document, read as a JSON Schema that refuses unknown keys."""

import json

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

CHAT, RESPONSES = "CreateChatCompletionRequest", "CreateResponse"
WORDS_ONLY = ("description", "example", "examples", "title", "externalDocs", "deprecated", "default")


class Judge:
    def __init__(self, file: str, request: str):
        with open(file, encoding="utf-8") as text:
            schemas = json.load(text)["components"]["schemas"]
        open_schemas = _pulled_into_all_of(schemas)
        closed = {name: _closed(schema, name, name in open_schemas) for name, schema in schemas.items()}
        closed[request].setdefault("unevaluatedProperties", False)
        document = {"$id": "urn:openai", "components": {"schemas": closed}}
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        registry = Registry().with_resource("urn:openai", resource)
        self.validator = Draft202012Validator({"$ref": f"urn:openai#/components/schemas/{request}"}, registry=registry)

    def complaints(self, body) -> list[str]:
        texts = []
        for error in list(self.validator.iter_errors(body))[:4]:
            error = _deepest(best_match([error]))
            # an unknown key at the root follows from any other complaint: the branch with the key did not match
            if texts and not error.absolute_path and error.validator == "unevaluatedProperties":
                continue
            texts.append(f"document: {'/'.join(map(str, error.absolute_path)) or '<root>'}: {error.message[:220]}")
        return texts


def _refs(schema: dict) -> set[str]:
    parts = schema.get("allOf", []) if isinstance(schema.get("allOf"), list) else []
    return {part["$ref"].rsplit("/", 1)[1] for part in parts if isinstance(part, dict) and "$ref" in part}


def _pulled_into_all_of(schemas: dict) -> set[str]:
    """A schema that others extend stays open, with everything that it extends itself."""
    found: set[str] = set()

    def walk(node):
        if isinstance(node, dict):
            found.update(_refs(node))
            for each in node.values():
                walk(each)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(schemas)
    grown = 0
    while grown != len(found):
        grown = len(found)
        for name in list(found):
            found |= _refs(schemas.get(name) or {})
    return found


def _closed(node, name: str, stays_open: bool = False):
    """The document's schema as JSON Schema 2020-12, with objects closed against unknown keys."""
    if isinstance(node, list):
        return [_closed(each, name) for each in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if key.startswith("x-") or key in ("discriminator", "$recursiveAnchor"):
            continue
        if key in WORDS_ONLY and not isinstance(value, dict):
            continue
        if key == "$recursiveRef":
            out["$ref"] = f"#/components/schemas/{name}"
        elif key == "properties":
            out[key] = {property: _closed(schema, name) for property, schema in value.items()}
        elif key == "allOf":
            out[key] = [_closed(part, name, True) for part in value]
        elif key in ("enum", "const", "required"):
            out[key] = value
        else:
            # the branches of its oneOf overlap
            out["anyOf" if key == "oneOf" else key] = _closed(value, name)
    # `nullable` is no word of JSON Schema any more, but the document still uses it
    nullable = out.pop("nullable", False)
    has_keys = "allOf" in out or ("properties" in out and "additionalProperties" not in out)
    if has_keys and not stays_open:
        out["unevaluatedProperties"] = False
    return {"anyOf": [out, {"type": "null"}]} if nullable else out


def _deepest(error):
    """The branch of a union that fits best: no wrong tag, then the fewest complaints."""
    if not error.context:
        return error
    branches: dict = {}
    for each in error.context:
        branches.setdefault(each.schema_path[0], []).append(each)
    best = min(branches.values(), key=lambda found: (any(_wrong_tag(each) for each in found), len(found)))
    return _deepest(max(best, key=lambda each: (each.validator != "unevaluatedProperties", len(each.absolute_path))))


def _wrong_tag(error) -> bool:
    if len(error.path) == 1 and error.path[0] in ("type", "role", "object") and error.validator in ("enum", "const"):
        return True
    if error.validator == "type" and not error.path:
        return True
    return len(error.path) <= 1 and any(_wrong_tag(each) for each in error.context or [])
