"""The tables: median, spread, and the ratio to the floor `bare`."""

import statistics
from collections.abc import Callable

import plan
from curves import DIMENSIONS, curves
from goals import Metric, Row, median, per, value
from plan import Scenario

# How far the bytes of a request may be from the loop's before it is said.
ABOUT_THE_SAME = 0.15
SENT = per("request_bytes", "calls")

INTRODUCTION = """\
# What was measured last

Written by `cargo xtask bench`; `latest.json` beside it has every run. CPU time is that of the client's process, user and
system; the server is another process that does not think. A figure is the median of its runs, in brackets the lowest and
the highest; × is the ratio of medians to `bare`. Only ratios within one table mean anything on another machine.

`bare` is a loop written by hand on reqwest with typed serde structs, `bare-hyper` one on a bare hyper connection with the
history kept as the bytes to send.

{peers}
"""


def number(figure: float, digits: int) -> str:
    return f"{figure:,.{digits}f}"


def figures(rows: list[Row], metric: Metric) -> list[float]:
    return sorted(figure for figure in map(metric[1], rows) if figure is not None)


def cell(rows: list[Row], metric: Metric, spread: bool) -> str:
    found = figures(rows, metric)
    if not found:
        return ""
    text = number(statistics.median(found), metric[2])
    if spread and len(found) > 1:
        text += f" ({number(found[0], metric[2])} – {number(found[-1], metric[2])})"
    return text


def order(rows: list[Row]) -> list[str]:
    """Clients as the plan lists them, then what else there is."""
    known = [client.name for client in plan.RUST + plan.OTHERS]
    found = dict.fromkeys(row["client"] for row in rows)
    return [name for name in known if name in found] + [name for name in found if name not in known]


def table(scenario: Scenario, rows: list[Row]) -> list[str]:
    metrics = [metric for metric in scenario.metrics if figures([row for row in rows if "error" not in row], metric)]
    if not metrics:
        return ["No run gave a figure."]
    good = [row for row in rows if "error" not in row]
    plain = [row for row in good if not row["counted"]]
    floor = figures([row for row in plain if row["client"] == "bare"], metrics[0])
    lines = [f"| client | {' | '.join(name for name, _, _ in metrics)} | × bare | runs |"]
    lines.append("|---" * (len(metrics) + 3) + "|")
    for name in order(rows):
        mine = [row for row in plain if row["client"] == name]
        if not mine:
            failed = next(row for row in rows if row["client"] == name and "error" in row)
            lines.append(f"| {name} | failed: {failed['error'][-200:]!r} {'| ' * (len(metrics) + 1)}|")
            continue
        counted = [row for row in good if row["client"] == name and row["counted"]]
        cells = []
        for index, metric in enumerate(metrics):
            # What only a binary that counts can tell comes from its run.
            source = mine if figures(mine, metric) else counted
            cells.append(cell(source, metric, spread=index == 0))
        compared = figures(mine, metrics[0])
        ratio = number(statistics.median(compared) / statistics.median(floor), 2) if floor and compared else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio} | {len(mine)} |")
    return lines


def met(scenario: Scenario, rows: list[Row]) -> list[tuple[str, ...]]:
    """The scenario's goals that there are figures for."""
    return [said for goal in scenario.goals if (said := goal.said(rows))]


def goals_table(rows: list[Row]) -> list[str]:
    """All of them."""
    lines = []
    for scenario in plan.SCENARIOS:
        for said in met(scenario, [row for row in rows if row["scenario"] == scenario.name]):
            lines.append(f"| {scenario.name} | {' | '.join(said)} |")
    return ["| scenario | goal for cepa | at most | is | met |", "|---|---|---|---|---|", *lines] if lines else []


def sent_by_bare(rows: list[Row]) -> Callable[[float], float] | None:
    """Bytes of a request of `bare` on the average of so many turns. A conversation that grows does so evenly."""
    mine = [row for row in rows if row["client"] == "bare" and not row["counted"] and "error" not in row]
    if not mine:
        return None
    if not (looks := mine[0].get("curve")):
        return lambda turns: median(rows, "bare", SENT)
    first, last = looks[0], looks[-1]
    each = (last["sent_bytes"] - first["sent_bytes"]) / max(last["messages"] - first["messages"], 1)
    # The messages before a turn are one less than the turns on the average.
    return lambda turns: first["sent_bytes"] + each * (turns - 1 - first["messages"])


def sent_notes(scenario: Scenario, rows: list[Row]) -> list[str]:
    """Who sends clearly more or less than the loop by hand, and so does not the same work."""
    bare, notes = sent_by_bare(rows), []
    if not bare:
        return []
    for name in order(rows):
        sent, turns = median(rows, name, SENT), median(rows, name, value("turns"))
        if sent is None or name.startswith("cepa run"):
            continue
        share = sent / bare(turns)
        if abs(share - 1) > ABOUT_THE_SAME:
            notes.append(f"{name} sends {share:.2f} times the bytes of bare.")
    return notes


def shorter_notes(scenario: Scenario, rows: list[Row]) -> list[str]:
    """Who was stopped before the end: the last turns of a shorter conversation cost less."""
    whole = median(rows, "bare", value("turns"))
    if scenario.client_scenario not in ("long", "longdb") or not whole:
        return []
    came = ((name, median(rows, name, value("turns"))) for name in order(rows))
    return [f"{name} was stopped after {turns:,.0f} turns: its last tenth is that of a shorter conversation." for name, turns in came if turns and turns < whole]


def section(scenario: Scenario, rows: list[Row]) -> list[str]:
    lines = ["", f"## {scenario.name}", "", scenario.what, "", *table(scenario, rows)]
    if said := met(scenario, rows):
        lines += ["", "| goal for cepa | at most | is | met |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(goal)} |" for goal in said]
    wrong = {(row["client"], row["error"]) for row in rows if "error" in row}
    left_out = {name: why for name, why in scenario.leave_out.items() if name not in plan.NO_MEMORY}
    notes = [scenario.notes] if scenario.notes else []
    notes += sent_notes(scenario, rows) + shorter_notes(scenario, rows)
    notes += [f"{name} is not here: it {why}." for name, why in left_out.items()]
    notes += [f"A run of {client} failed: {error[-200:]}" for client, error in sorted(wrong)]
    return lines + (["", *(f"* {note}" for note in notes)] if notes else [])


def growth(rows: list[Row]) -> list[str]:
    """What the growing scenarios show, one table a dimension."""
    lines = []
    for name, what, digits, points_of in DIMENSIONS:
        found = curves(rows, points_of)
        if not found:
            continue
        points = sorted({at for line in found.values() for at in line})
        lines += ["", f"### {name}", "", f"{what}.", "", f"| client | {' | '.join(f'{at:,}' for at in points)} |"]
        lines.append("|---" * (len(points) + 1) + "|")
        for client, line in found.items():
            cells = (number(line[at], digits) if at in line else "" for at in points)
            lines.append(f"| {client} | {' | '.join(cells)} |")
    return ["", "## growth", "", "![cost against size](growth.svg)", *lines] if lines else []


def binaries(sizes: dict) -> list[str]:
    lines = ["", "## binary size", "", "Release builds with cargo's default profile, stripped.", ""]
    lines += ["| program | MiB | code | constants | × bare |", "|---|---|---|---|---|"]
    mib = 1 << 20
    floor = next((size["stripped"] for size in sizes["programs"] if size["name"] == "bare"), None)
    for size in sizes["programs"]:
        ratio = number(size["stripped"] / floor, 2) if floor else ""
        cells = (number(size[key] / mib, 2) for key in ("stripped", "code", "constants"))
        lines.append(f"| {size['name']} | {' | '.join(cells)} | {ratio} |")
    for name, crates in sizes["crates"].items():
        lines += ["", f"What {name} is made of: symbols by the crate that they are written in, KiB.", ""]
        lines.append(", ".join(f"{crate} {bytes / 1024:,.0f}" for crate, bytes in crates) + ".")
    lines += ["", "Both floors, cepa and rig have SQLite in them; genai has none."]
    return lines


def render(report: dict) -> str:
    rows = report["runs"]
    versions = report["versions"]
    ran = {row["client"] for row in rows}
    used = [client for client in plan.RUST + plan.OTHERS if client.how and client.name in ran]
    peers = "\n".join(f"* {client.name} (`{versions.get(client.program.removeprefix('bench-'), '')}`): {client.how}." for client in used)
    lines = [INTRODUCTION.format(peers=peers)]
    spins = [row["spin_ms"] for row in rows if "spin_ms" in row]
    loads = [row["load"] for row in rows]
    if spins:
        lines.append(
            f"{report['when']} UTC, commit {report['commit']}, {report['rustc']}, {report['cpu']}, {report['system']}. "
            f"The machine's load was {min(loads):.1f} – {max(loads):.1f}; a fixed piece of work took "
            f"{min(spins):.0f} – {max(spins):.0f} ms of CPU, median {statistics.median(spins):.0f}."
        )
    if report["quick"]:
        lines += ["", "**A quick run: a tenth of the work, once. The figures show that it works, not what it costs.**"]
    if lines_of_goals := goals_table(rows):
        lines += ["", "## Goals", "", *lines_of_goals]
    for scenario in plan.SCENARIOS:
        mine = [row for row in rows if row["scenario"] == scenario.name]
        if mine and scenario.name not in plan.GROWTH_NAMES:
            lines += section(scenario, mine)
    lines += growth(rows)
    if "sizes" in report:
        lines += binaries(report["sizes"])
    return "\n".join(lines) + "\n"
