#!/usr/bin/env python3
"""Does LiteLLM read our requests as we mean them?  translate_litellm.py REQUEST.json…

The folder of a file names its wire. LiteLLM, a translator that nobody here wrote, turns each request into other wires; what it makes has
to mean the same as the original, apart from the losses listed in translate_losses.py. And where one conversation is at hand in two wires
(golden requests of one name, one step of the drives of several wires), LiteLLM's translation of the one has to mean the same as our other.
"""

import difflib
import json
import pathlib
import sys
from collections import Counter
from typing import Callable, Iterable, Iterator

import translate_bites as bites
import translate_routes as routes
from translate_losses import APART, LOSSES, OTHER_CONVERSATIONS, Loss, untranslated
from translate_meaning import reading

Route = tuple[str, ...]
ROUTES: list[Route] = [*routes.STEPS, ("anthropic", "openai_chat", "gemini")]
# another vendor's dialect of chat completions
DIALECTS = {"openai_compatible": "openai_chat"}

WIRES = {wire for step in routes.STEPS for wire in step}

seen: Counter[int] = Counter()


def main() -> None:
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    if not files:
        sys.exit(f"usage: {sys.argv[0]} REQUEST.json…")
    routes.no_network()
    bodies = {file: json.loads(neutral(file)) for file in files}
    failures = bites.blind_spots(difference, ROUTES)
    seen.clear()
    for route in ROUTES:
        failures += judged(" → ".join(route), alone(route, bodies))
        failures += judged(f"{' → '.join(route)} = ours", twins(route, bodies))
    failures += tables({wire(file) for file in files if recorded(file)} >= WIRES)
    print(f"{len(files)} requests, {failures} judged badly")
    sys.exit(1 if failures else 0)


def tables(complete: bool) -> int:
    """Prints how often each known line was needed. One that was not is stale, unless the drives that need it have not run."""
    stale = 0
    for kind, table in (("loss", LOSSES), ("difference", APART)):
        for line in table:
            print(f"{seen[id(line)]:8}  known {kind}: {' → '.join(line.route)}: {line.why}")
            if complete and not seen[id(line)]:
                print("          this line is not needed any more: take it out of the table")
                stale += 1
    return stale


Case = tuple[pathlib.Path, Route, dict, dict | None]


def alone(route: Route, bodies: dict[pathlib.Path, dict]) -> Iterator[Case]:
    for file, body in bodies.items():
        if wire(file) == route[0]:
            yield file, route, body, None


def twins(route: Route, bodies: dict[pathlib.Path, dict]) -> Iterator[Case]:
    ours = {twin(file): body for file, body in bodies.items() if wire(file) == route[-1] and twin(file)}
    for file, body in bodies.items():
        if wire(file) == route[0] and twin(file) in ours and twin(file) not in OTHER_CONVERSATIONS:
            yield file, route, body, ours[twin(file)]


def recorded(file: pathlib.Path) -> bool:
    return "sent" in file.parts


def wire(file: pathlib.Path) -> str:
    return DIALECTS.get(file.parent.name, file.parent.name)


# the golden requests of these wires are made from the same conversations; those of the two others are so where they are called same_…
FAMILIES = {"openai_chat": "openai", "openai_responses": "openai", "anthropic": "others", "gemini": "others"}


def twin(file: pathlib.Path) -> tuple[str, str] | None:
    """What files that hold one conversation share: a golden name, or the number of a request in the same drive over another wire."""
    if recorded(file):
        drive = file.parents[2].name.split("-")[0]
        return (drive, file.stem[:3]) if drive == "aimock" else None
    if file.stem.startswith("same_"):
        return "openai", file.stem.removeprefix("same_")
    family = FAMILIES.get(file.parent.name)
    return (family, file.stem) if family else None


def neutral(file: pathlib.Path) -> str:
    """The text of a file; the system text of a drive names its work folder, which is called after the wire."""
    whole = file.read_text(encoding="utf-8")
    return whole.replace(f"/{file.parents[2].name}/", "/drive/") if recorded(file) else whole


def label(file: pathlib.Path) -> str:
    place = file.parents[2].name + " " if recorded(file) else ""
    return f"{place}{file.parent.name}/{file.name}"


def judged(heading: str, cases: Iterator[Case]) -> int:
    good, bad, left = 0, 0, []
    for file, route, body, ours in cases:
        name = (twin(file) or ("", ""))[1]
        if why := untranslated(route, reading(route[0], body)):
            left.append(f"{label(file)}: {why}")
            continue
        found = difference(route, body, ours, (*LOSSES, *APART) if ours else LOSSES, name)
        good, bad = good + (not found), bad + bool(found)
        if found:
            print(f"{'differs':>8}  {heading}  {label(file)}")
            for line in found:
                print(f"          {line}")
    print(f"{good:8}  mean the same: {heading}")
    for line in left:
        print(f"          left out: {line}")
    return bad


def difference(
    route: Route,
    body: dict,
    ours: dict | None = None,
    known: Iterable[Loss] = LOSSES,
    name: str = "",
    damage: Callable[[dict], dict] = lambda made: made,
) -> list[str]:
    """What `body` means, or `ours` if that is given, against what LiteLLM makes of `body`, line by line."""
    try:
        made = damage(routes.translate(route, body))
        got = reading(route[-1], made)
    except Exception as problem:  # whatever a foreign program throws is a finding about this body
        return [f"{type(problem).__name__}: {problem}"]
    expected = reading(route[0], body) if ours is None else reading(route[-1], ours)
    for line in known:
        steps = [*zip(route, route[1:]), route]
        if line.route not in steps or (line.only and line.only != name):
            continue
        before = text(expected, got)
        line.change(expected, got)
        seen[id(line)] += before != text(expected, got)
    changes = difflib.unified_diff(lines(expected), lines(got), "expected", "LiteLLM", lineterm="", n=1)
    return list(changes)


def text(*readings: dict) -> str:
    return json.dumps(readings, sort_keys=True)


def lines(meant: dict) -> list[str]:
    """One line an item, in which 1 and 1.0 and true are three things."""
    rows = []
    for key in sorted(meant):
        values = meant[key] if isinstance(meant[key], list) else [meant[key]]
        rows += [f"{key}: {json.dumps(value, ensure_ascii=False, sort_keys=True)}" for value in values]
    return rows


if __name__ == "__main__":
    main()
