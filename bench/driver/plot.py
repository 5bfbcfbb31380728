"""Cost against size, as one picture of three panels with logarithmic axes."""

import math
import statistics

import plan
from plan import Row

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 260, 62, 46, 74
COLOURS = {"bare": "#8a8f98", "bare-hyper": "#c9a227", "cepa": "#b0306a"}

Line = dict[int, float]


def medians(points: list[tuple[int, float]]) -> Line:
    found: dict[int, list[float]] = {}
    for at, cost in points:
        found.setdefault(at, []).append(cost)
    return {at: statistics.median(costs) for at, costs in sorted(found.items())}


def lines(rows: list[Row], points_of) -> dict[str, Line]:
    found: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if "error" not in row and row["client"] in COLOURS:
            found.setdefault(row["client"], []).extend(points_of(row))
    return {name: medians(found[name]) for name in COLOURS if found.get(name)}


def of_prefix(prefix: str, figure):
    def points(row: Row) -> list[tuple[int, float]]:
        name = row["scenario"]
        return [(int(name.removeprefix(prefix)), figure(row))] if name.startswith(prefix) else []

    return points


def panel(x: float, title: str, axis: str, unit: str, drawn: dict[str, Line]) -> list[str]:
    sizes = [at for line in drawn.values() for at in line]
    costs = [cost for line in drawn.values() for cost in line.values()]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs) * 1.01))
    first, last = math.log10(max(min(sizes), 1)), math.log10(max(sizes))

    def across(at: int) -> float:
        return x + WIDTH * (math.log10(at) - first) / max(last - first, 1e-9)

    def down(cost: float) -> float:
        return TOP + HEIGHT * (high - math.log10(cost)) / max(high - low, 1)

    out = [f'<text x="{x}" y="{TOP - 24}" class="title">{title}</text><text x="{x}" y="{TOP - 9}" class="small">{unit}</text>']
    for power in range(low, high + 1):
        y = down(10**power)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{x + WIDTH}" y2="{y:.1f}" class="grid"/>')
        out.append(f'<text x="{x - 6}" y="{y + 4:.1f}" class="left">{10**power:,}</text>')
    few = len(set(sizes)) <= 6
    for at in sorted(set(sizes)):
        if few or math.log10(at) % 1 < 1e-9:
            out.append(f'<text x="{across(at):.1f}" y="{TOP + HEIGHT + 16}" class="below">{at:,}</text>')
    out.append(f'<text x="{x + WIDTH / 2}" y="{TOP + HEIGHT + 34}" class="below">{axis}</text>')
    for name, line in drawn.items():
        path = " ".join(f"{across(at):.1f},{down(cost):.1f}" for at, cost in line.items())
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        for at, cost in line.items():
            out.append(f'<circle cx="{across(at):.1f}" cy="{down(cost):.1f}" r="3" fill="{COLOURS[name]}"><title>{name}: {cost:,.0f} µs at {at:,}</title></circle>')
    return out


def growth(rows: list[Row]) -> str | None:
    """The picture, if there is anything to draw."""
    call = plan.per("cpu_us", "calls")
    history = lines(rows, lambda row: row["curve"] if row["scenario"] == "history" else [])
    conversations = lines(rows, of_prefix("conversations-", plan.value("us")))
    tools = lines(rows, of_prefix("tools-", call))
    panels = [
        ("History", "messages before the turn", "CPU µs / turn", history),
        ("Conversations", "conversations in memory", "CPU µs / turn", conversations),
        ("Tools", "tools offered", "CPU µs / model call", tools),
    ]
    panels = [panel for panel in panels if panel[3]]
    if not panels:
        return None
    width, height = LEFT + len(panels) * (WIDTH + GAP), TOP + HEIGHT + 76
    style = (
        "text{font:12px sans-serif;fill:#444}.title{font-weight:bold;font-size:14px}.small{font-size:11px}"
        ".left{text-anchor:end}.below{text-anchor:middle}.grid{stroke:#ddd}"
    )
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">']
    out.append(f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>')
    for index, (title, axis, unit, drawn) in enumerate(panels):
        out += panel(LEFT + index * (WIDTH + GAP), title, axis, unit, drawn)
    for index, (name, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + index * 110, height - 14
        out.append(f'<rect x="{x}" y="{y - 9}" width="18" height="4" fill="{colour}"/><text x="{x + 24}" y="{y}">{name}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
