#!/usr/bin/env python3
"""Counts instructions and compares them with the committed baseline. Started by `cargo xtask bench --check`.

    check.py --bin FOLDER --baseline FILE [--write] [--cases a,b] [--profiles FOLDER]

Instructions do not depend on what else the machine does. Each case runs twice under callgrind, once longer, against a
server of its own or without a network; the difference, divided by the work between, is what one piece of work takes.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from machine import serving

TOLERANCE = 0.05
COLLECTED = re.compile(r"Collected : (\d+)")


@dataclasses.dataclass(frozen=True)
class Case:
    """Fixed work: a scenario of a client, or a case of `bench-fixed`, at two lengths."""

    name: str
    what: str
    program: str
    scenario: str
    lengths: tuple[int, int]
    floor: str | None = None  # the case of the loop written by hand


def with_floor(name: str, what: str, scenario: str, lengths: tuple[int, int]) -> list[Case]:
    bare = Case(f"bare {name}", f"{what}, the loop written by hand", "bench-bare", scenario, lengths)
    return [bare, Case(name, what, "bench-cepa", scenario, lengths, bare.name)]


WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
CASES = [
    *with_floor("turn10", "a turn of ten tool rounds, in memory", "turn10", (20, 60)),
    *with_floor("par16", "a turn with sixteen calls at once", "par16", (20, 60)),
    *with_floor("stream", "an answer of 2,000 chunks", "stream", (5, 15)),
    *with_floor("turn-on-sqlite", "one of sixty turns on SQLite", "longdb", (20, 60)),
    Case("turn-at-2000", "a turn with 2,000 messages before it", "bench-fixed", "turn-at-2000", (20, 60)),
    Case("fold-openai_chat", "2,000 events, from bytes to a response", "bench-fixed", "fold-openai_chat", (5, 15)),
    *(Case(f"encode-{wire}", "1,000 messages encoded", "bench-fixed", f"encode-{wire}", (5, 15)) for wire in WIRES),
    *(Case(f"decode-{wire}", "an answer of 1,000 words decoded", "bench-fixed", f"decode-{wire}", (50, 150)) for wire in WIRES),
]


class Counter:
    """Runs cases under callgrind."""

    def __init__(self, bin: pathlib.Path, url: str, folder: pathlib.Path, profiles: pathlib.Path | None):
        self.bin, self.url, self.folder, self.profiles = bin, url, folder, profiles

    def _whole(self, case: Case, turns: int) -> int:
        profile = self.profiles / f"{case.name.replace(' ', '-')}.{turns}.callgrind" if self.profiles else "/dev/null"
        keys = [f"turns={turns}", "warm_up=5"]
        if case.scenario == "longdb":
            for old in self.folder.glob("check.db*"):
                old.unlink()
            # As many commits as cepa makes.
            keys += [f"db={self.folder / 'check.db'}", "commits=5"]
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", self.bin / case.program]
        done = subprocess.run([*command, case.scenario, self.url, *keys], capture_output=True, text=True)
        found = COLLECTED.search(done.stderr)
        if done.returncode or not found:
            raise SystemExit(f"{case.name}: {done.stderr.strip()[-600:]}")
        return int(found[1])

    def count(self, case: Case) -> int:
        short, long = case.lengths
        return round((self._whole(case, long) - self._whole(case, short)) / (long - short))


def rustc() -> str:
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip() or "?"


def compared(case: Case, counts: dict[str, int], before: dict[str, int]) -> tuple[str, float | None]:
    """A line of the table, and by how much it changed."""
    now, old = counts[case.name], before.get(case.name)
    change = now / old - 1 if old else None
    word = "new" if change is None else "WORSE" if change > TOLERANCE else "better" if change < -TOLERANCE else ""
    ratio = f"{now / counts[case.floor]:.2f}" if counts.get(case.floor) else ""
    cells = (case.name, f"{old:,}" if old else "", f"{now:,}", "" if change is None else f"{change:+.1%}", ratio, word)
    return f"{cells[0]:<24}{cells[1]:>14}{cells[2]:>14}{cells[3]:>9}{cells[4]:>8}  {cells[5]:<7} {case.what}", change


def main() -> None:
    parser = argparse.ArgumentParser(prog="cargo xtask bench --check")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--baseline", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="make what is counted now the baseline")
    parser.add_argument("--cases", help="names, with commas")
    parser.add_argument("--profiles", type=pathlib.Path, help="a folder for callgrind's profiles (see callgrind_annotate)")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed: it counts the instructions (Debian and Ubuntu: apt install valgrind)")
    if options.profiles:
        options.profiles.mkdir(parents=True, exist_ok=True)
    names = set(options.cases.split(",")) if options.cases else {case.name for case in CASES}
    if unknown := names - {case.name for case in CASES}:
        raise SystemExit(f"no such case: {', '.join(sorted(unknown))}; there are: {', '.join(case.name for case in CASES)}")
    cases = [case for case in CASES if case.name in names]
    baseline = json.loads(options.baseline.read_text()) if options.baseline.exists() else {"instructions": {}}
    compiler = rustc()
    counts: dict[str, int] = {}
    changes: dict[str, float | None] = {}
    print(f"{'instructions':<24}{'baseline':>14}{'now':>14}{'change':>9}{'× bare':>8}", flush=True)
    with serving(options.bin) as url, tempfile.TemporaryDirectory(prefix="cepa-check-") as folder:
        counter = Counter(options.bin, url, pathlib.Path(folder), options.profiles)
        for case in cases:
            counts[case.name] = counter.count(case)
            line, changes[case.name] = compared(case, counts, baseline["instructions"])
            print(line, flush=True)
    if options.write:
        kept = {case.name: counts.get(case.name) or baseline["instructions"].get(case.name) for case in CASES}
        kept = {name: count for name, count in kept.items() if count}
        options.baseline.write_text(json.dumps({"rustc": compiler, "instructions": kept}, indent=1) + "\n")
        print(f"\nwritten: {options.baseline}")
        return
    if baseline.get("rustc", compiler) != compiler:
        print(f"\nwarning: the baseline was counted with {baseline['rustc']}, this is {compiler}: some of it is the compiler's")
    worse = [name for name, change in changes.items() if change is not None and change > TOLERANCE]
    better = [name for name, change in changes.items() if change is not None and change < -TOLERANCE]
    new = [name for name, change in changes.items() if change is None]
    if better or new:
        print(f"\nbetter than the baseline, or not in it: {', '.join(better + new)}. Renew it by `cargo xtask bench --check --write`.")
    if worse:
        print(f"\nerror: more than {TOLERANCE:.0%} worse than the baseline: {', '.join(worse)}")
        sys.exit(1)
    print(f"\nnothing is more than {TOLERANCE:.0%} worse than the baseline")


if __name__ == "__main__":
    main()
