"""What both request validators share: reading files, telling the verdict, and showing first that bad bodies are refused."""

import json
import pathlib
import sys
from typing import Callable

Complaints = Callable[[dict, str], list[str]]


def main(complaints: Complaints, good: dict, bad: dict[str, Callable[[dict], object]]) -> None:
    """Judges the files named on the command line; exits 0 when each is accepted, 1 when one is refused, 2 without files.

    `bad` holds ways to spoil a copy of `good`: a validator that no longer refuses one of them is of no use, so that is a failure too.
    """
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    if not files:
        sys.exit(f"usage: {sys.argv[0]} REQUEST.json…")
    failures = _blind_spots(complaints, good, bad)
    for file in files:
        try:
            found = complaints(json.loads(file.read_text(encoding="utf-8")), file.stem)
        except ValueError as error:
            found = [f"not JSON: {error}"]
        print(f"{'refused' if found else 'ok':>8}  {file.name}")
        for text in found:
            print(f"          {text}")
        failures += bool(found)
    print(f"{len(files)} requests and {len(bad) + 1} known bodies judged, {failures} judged badly")
    sys.exit(1 if failures else 0)


def _blind_spots(complaints: Complaints, good: dict, bad: dict[str, Callable[[dict], object]]) -> int:
    failures = 0
    for text in complaints(json.loads(json.dumps(good)), "good"):
        print(f"the validator refuses a good body: {text}")
        failures += 1
    for name, spoil in bad.items():
        body = json.loads(json.dumps(good))
        spoil(body)
        if not complaints(body, "bad"):
            print(f"the validator accepts a bad body: {name}")
            failures += 1
    return failures
