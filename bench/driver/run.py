#!/usr/bin/env python3
"""Measures the clients against a mock server of its own and writes the tables. Started by `cargo xtask bench`.

    run.py --bin FOLDER --cli BINARY --home FOLDER --out FOLDER [--peers] [--scenarios a,b] [--clients a,b] [--reps N] [--quick]

Every repeat visits every client in turn and begins with another one, since whatever else the machine does should fall
on all of them. Each run is checked against the server's own count of calls.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import pages
import plan
import plot
import sizes
import tables
from goals import Row
from machine import Machine, serving
from plan import Client, Scenario

QUICK = 10


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for folder in ("bin", "cli", "home", "out"):
        parser.add_argument(f"--{folder}", type=pathlib.Path, required=True)
    parser.add_argument("--peers", action="store_true", help="also the Python and JavaScript frameworks")
    parser.add_argument("--scenarios", help="names, with commas; `growth` means all that grow")
    parser.add_argument("--clients", help="names, with commas")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--peer-reps", type=int, help="of the Python and JavaScript frameworks, if fewer")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, once")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one run may take")
    parser.add_argument("--add", action="store_true", help="replace only what is measured now in latest.json")
    parser.add_argument("--render", action="store_true", help="only write the tables anew from latest.json")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> tuple[list[Scenario], list[Client]]:
    clients = plan.RUST + (plan.OTHERS if options.peers else [])
    if options.clients:
        names = set(options.clients.split(","))
        clients = [client for client in clients if client.name.split(",")[0] in names]
    scenarios = plan.SCENARIOS
    if options.scenarios:
        names = set(options.scenarios.split(","))
        if "growth" in names:
            names |= set(plan.GROWTH_NAMES)
        known = {scenario.name for scenario in scenarios} | {"growth", "sizes"}
        if unknown := names - known:
            raise SystemExit(f"no such scenario: {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
        scenarios = [scenario for scenario in scenarios if scenario.name in names]
    return scenarios, clients


def wants(scenario: Scenario, client: Client) -> bool:
    if client.kind not in scenario.sizes or client.name in scenario.leave_out:
        return False
    if client.name == plan.FEW_HOT:
        return scenario.name == "idle"
    return not scenario.only or client.name in scenario.only


def shown(row: Row) -> str:
    figure = row.get("error") or f"{row['cpu_us'] / row['turns']:.0f} µs a turn"
    return f"{row['scenario']:<20} {row['client']:<16} {figure} (load {row['load']:.1f})"


class Runs:
    """All runs of this call, kept on disk as they come."""

    def __init__(self, machine: Machine, options: argparse.Namespace):
        self.machine, self.shrink, self.rows = machine, QUICK if options.quick else 1, []
        self.log = (options.out / "latest.jsonl").open("w")

    def add(self, row: Row) -> Row:
        self.rows.append(row)
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()
        print(shown(row), flush=True)
        return row

    def one(self, client: Client, scenario: Scenario, more: dict[str, str], counted: bool = False) -> Row:
        return self.add(self.machine.run(client, scenario, self.shrink, more, counted))


def measure(runs: Runs, scenarios: list[Scenario], clients: list[Client], reps: int, peer_reps: int) -> None:
    more: dict[str, dict[str, str]] = {}
    for rep in range(reps):
        for scenario in scenarios:
            if rep >= (scenario.repeats or reps):
                continue
            wanted = [client for client in clients if wants(scenario, client)]
            wanted = [client for client in wanted if client.kind == "rust" or rep < peer_reps]
            if scenario.client_scenario == "longdb" and rep == 0:
                more[scenario.name] = {"commits": str(commits(runs.machine, scenario))}
            turn = rep % max(len(wanted), 1)
            for client in wanted[turn:] + wanted[:turn]:
                runs.one(client, scenario, more.get(scenario.name, {}))
                if scenario.counted and rep == 0 and client.kind == "rust":
                    runs.one(client, scenario, {}, counted=True)
            if scenario.name == "cold":
                url = ["--model", "openai/say-3", "--base-url", f"{runs.machine.url}/v1"]
                runs.add(runs.machine.run_cli(plan.CLI_OFFLINE, ["--model", "offline"], 0))
                runs.add(runs.machine.run_cli(plan.CLI_MOCK, url, 1))


def commits(machine: Machine, scenario: Scenario) -> int:
    """How often cepa commits in a turn: what the floors must do too."""
    cepa = next(client for client in plan.RUST if client.name == "cepa")
    return round(machine.run(cepa, scenario, 100, {}).get("commits") or 1)


def surroundings(options: argparse.Namespace) -> dict:
    here = plan.HERE.parent

    def says(*command: str) -> str:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True)
        return done.stdout.strip() or "?"

    cpu = next((line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ": ?")
    return {
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": says("git", "rev-parse", "--short", "HEAD"),
        "rustc": says("rustc", "--version"),
        "cpu": f"{os.cpu_count()} × {cpu.split(':', 1)[1].strip()}",
        "system": f"{platform.system()} {platform.release()}",
        "quick": options.quick,
        "versions": versions(here),
    }


def added(before: dict, now: dict) -> dict:
    """What was measured before, but for what is measured now."""
    anew = {(row["scenario"], row["client"]) for row in now["runs"]}
    kept = [row for row in before["runs"] if (row["scenario"], row["client"]) not in anew]
    sizes = now.get("sizes") or before.get("sizes")
    return {**now, "runs": kept + now["runs"]} | ({"sizes": sizes} if sizes else {})


def versions(here: pathlib.Path) -> dict[str, str]:
    """Of everybody that is not ours."""
    listed = json.loads((here.parent / "peers/versions.json").read_text())
    parts = {name: packages for kind in listed.values() for name, packages in kind.items()}
    rust = {name: locked(here / f"peers/{name}/Cargo.lock", name) for name in ("rig", "genai")}
    others = {client.program: " ".join(parts[f"bench-{client.program}"]) for client in plan.OTHERS}
    return rust | others


def locked(lock: pathlib.Path, name: str) -> str:
    lines = lock.read_text().splitlines()
    return lines[lines.index(f'name = "{name}"') + 1].split('"')[1]


def main() -> None:
    wanted = options()
    wanted.out.mkdir(parents=True, exist_ok=True)
    results = wanted.out / "latest.json"
    if wanted.render:
        report = json.loads(results.read_text())
    else:
        scenarios, clients = chosen(wanted)
        report = surroundings(wanted)
        reps = 1 if wanted.quick else wanted.reps
        with serving(wanted.bin) as url, tempfile.TemporaryDirectory(prefix="cepa-bench-") as folder:
            runs = Runs(Machine(url, folder, wanted.bin, wanted.cli, wanted.home, wanted.limit), wanted)
            measure(runs, scenarios, clients, reps, min(wanted.peer_reps or reps, reps))
        report["runs"] = runs.rows
        if not wanted.scenarios or "sizes" in wanted.scenarios:
            report["sizes"] = sizes.of(wanted.bin, wanted.cli)
        if wanted.add and results.exists():
            report = added(json.loads(results.read_text()), report)
        results.write_text(json.dumps(report, indent=1) + "\n")
        (wanted.out / "latest.jsonl").unlink()
    text = tables.render(report)
    (wanted.out / "latest.md").write_text(text)
    if picture := plot.growth(report["runs"]):
        (wanted.out / "growth.svg").write_text(picture)
    print("\n" + text)
    if wanted.render:
        pages.renew(report)


if __name__ == "__main__":
    main()
