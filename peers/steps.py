"""What every drive shares: its command line, its work folder, and steps that say how they went."""

import argparse
import contextlib
import pathlib
import shutil
import time

import cepa
import servers


def options(*wires: str) -> argparse.Namespace:
    """`--cepa` is our binary, `--peers` the folder that holds the fetched programs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cepa", required=True)
    parser.add_argument("--peers", required=True, type=pathlib.Path)
    if wires:
        parser.add_argument("wire", choices=wires)
    servers.end_when_asked()
    return parser.parse_args()


def folder(wanted: argparse.Namespace, name: str) -> pathlib.Path:
    """A fresh folder of this drive under the peers' folder; it stays, for a look and for the validators."""
    place = wanted.peers / "work" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


@contextlib.contextmanager
def step(name: str):
    began = time.monotonic()
    try:
        yield
    except (cepa.Unexpected, OSError, ValueError, KeyError) as problem:
        raise SystemExit(f"FAILED  {name}\n{problem}") from problem
    print(f"ok {time.monotonic() - began:6.1f} s  {name}", flush=True)
