"""How large the programs are, and which crates that is: read off the symbols of a binary that still has them."""

import collections
import pathlib
import re
import subprocess
import tempfile

PROGRAMS = {
    "bare": "bench-bare",
    "bare-hyper": "bench-bare-hyper",
    "cepa, as a library": "bench-cepa",
    "genai": "bench-genai",
    "rig": "bench-rig",
}
CLI = "cepa, the command line program"
# `<&mut alloc::vec::Vec<T> as core::fmt::Debug>::fmt` is written in alloc.
CRATE = re.compile(r"^(?:[<&(\[*]|mut |const |dyn |unsafe |extern |fn)*([a-z_][a-z0-9_]*)(?:\[[0-9a-f]+\])?::")
DROP = re.compile(r"^core::ptr::drop_in_place::?<(.*)")
MANY = 14


def crate_of(symbol: str) -> str:
    if drop := DROP.match(symbol):
        symbol = drop[1]
    if found := CRATE.match(symbol):
        name = found[1]
        return "std" if name in ("core", "alloc", "std") else name
    if symbol.startswith("ring_core") or "sqlite" in symbol:
        return "ring (C, assembly)" if symbol.startswith("ring_core") else "SQLite (C)"
    return "C (SQLite's inner functions and others)"


def by_crate(binary: pathlib.Path) -> list[tuple[str, int]]:
    command = ["nm", "--print-size", "--size-sort", "--demangle", binary]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sizes: collections.Counter[str] = collections.Counter()
    for line in listing.splitlines():
        parts = line.split(" ", 3)
        # What begins as zeros is not in the file.
        if len(parts) == 4 and parts[2] not in "bB":
            sizes[crate_of(parts[3])] += int(parts[1], 16)
    largest = sizes.most_common(MANY)
    return [*largest, ("others", sizes.total() - sum(size for _, size in largest))]


def program(name: str, binary: pathlib.Path, folder: pathlib.Path) -> dict:
    stripped = folder / binary.name
    subprocess.run(["strip", "-o", stripped, binary], check=True)
    sections = subprocess.run(["size", "-A", stripped], capture_output=True, text=True, check=True).stdout
    sizes = {words[0]: int(words[1]) for line in sections.splitlines() if len(words := line.split()) == 3 and words[1].isdigit()}
    constants = sum(sizes.get(part, 0) for part in (".rodata", ".data.rel.ro", ".eh_frame", ".gcc_except_table"))
    return {"name": name, "stripped": stripped.stat().st_size, "code": sizes.get(".text", 0), "constants": constants}


def of(bin: pathlib.Path, cli: pathlib.Path) -> dict:
    binaries = {name: bin / binary for name, binary in PROGRAMS.items()} | {CLI: cli}
    with tempfile.TemporaryDirectory() as folder:
        found = {name: binary for name, binary in binaries.items() if binary.exists()}
        programs = [program(name, binary, pathlib.Path(folder)) for name, binary in found.items()]
    crates = {name: by_crate(found[name]) for name in ("cepa, as a library", CLI) if name in found}
    return {"programs": programs, "crates": crates}
