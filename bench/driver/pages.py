"""The parts of the repository's pages that come from the last measurement: between two comments that name them."""

import model
import plan
import tables
from goals import Row, median

ROOT = plan.HERE.parent.parent
# How the pages call a scenario and the figure of it that is compared.
SHORT = {
    "turn10": "a tool round, CPU µs a model call",
    "turn10c": "the same, 64 conversations at once",
    "par16": "16 calls at once, CPU µs a turn",
    "long1000": "after 900 turns in one conversation, CPU µs a turn",
    "longdb": "200 turns on SQLite, the last, CPU µs a turn",
    "stream": "a streamed chunk, CPU µs",
    "idle": "a conversation kept, bytes",
    "cold": "start and first turn, CPU ms",
}


def measured(report: dict) -> list[tuple[plan.Scenario, list[Row]]]:
    by_name = {scenario.name: scenario for scenario in plan.SCENARIOS}
    rows = ((by_name[name], [row for row in report["runs"] if row["scenario"] == name]) for name in SHORT)
    return [(scenario, mine) for scenario, mine in rows if mine]


def said_when(report: dict) -> list[str]:
    quick = " **A quick run: the figures show that it works, not what it costs.**" if report["quick"] else ""
    loads = [row["load"] for row in report["runs"]]
    load = f", load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    return [f"{report['when']} UTC, commit {report['commit']}, {report['rustc'].split(' (')[0]}, {report['cpu']}{load}.{quick}"]


def main_table(report: dict) -> list[str]:
    lines = ["| work | by hand (`bare`) | cepa | ratio | rig | genai |", "|---|---|---|---|---|---|"]
    for scenario, rows in measured(report):
        _, figure, digits = scenario.metrics[0]
        found = {name: median(rows, name, figure) for name in ("bare", "cepa", "rig", "genai")}
        ratio = found["cepa"] / found["bare"] if found["cepa"] and found["bare"] else None
        cells = [tables.number(found[name], digits) if found[name] is not None else "" for name in found]
        shown = f"**{ratio:.2f}**" if ratio else ""
        lines.append(f"| {SHORT[scenario.name]} | {cells[0]} | {cells[1]} | {shown} | {cells[2]} | {cells[3]} |")
    return lines


def others_table(report: dict) -> list[str]:
    """How many times the loop's figure everybody needs."""
    scenarios = measured(report)
    lines = [f"| client | {' | '.join(scenario.name for scenario, _ in scenarios)} |", "|---" * (len(scenarios) + 1) + "|"]
    for client in plan.RUST + plan.OTHERS:
        cells = []
        for scenario, rows in scenarios:
            ours, bare = (median(rows, name, scenario.metrics[0][1]) for name in (client.name, "bare"))
            ratio = ours / bare if ours is not None and bare else None
            cells.append("" if ratio is None else tables.number(ratio, 2 if ratio < 10 else 0))
        if any(cells):
            lines.append(f"| {client.name} | {' | '.join(cells)} |")
    return lines


def goals(report: dict) -> list[str]:
    return tables.goals_table(report["runs"])


PARTS = {"when": said_when, "main": main_table, "others": others_table, "goals": goals, "model": model.section}


def renewed(text: str, report: dict) -> str:
    for name, lines_of in PARTS.items():
        start, end = f"<!-- bench:{name} -->", f"<!-- bench:{name} end -->"
        if start in text:
            before, rest = text.split(start, 1)
            _, after = rest.split(end, 1)
            text = before + "\n".join([start, "", *lines_of(report), "", end]) + after
    return text


def renew(report: dict) -> None:
    for page in ("README.md", "docs/performance.md"):
        path = ROOT / page
        path.write_text(renewed(path.read_text(), report))
