"""Cost against size, as one picture with logarithmic axes: CPU time above, bytes below."""

import math

from curves import CONVERSATIONS, SENT, TOOLS, Line, along, among, curves, held_along, sent_along
from goals import Row, per, value

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 260, 62, 46, 74
COLOURS = {"bare": "#8a8f98", "bare-hyper": "#c9a227", "cepa": "#b0306a"}
# Bytes of a request: the same for everybody.
REQUEST, DARK = "a request", "#3a6ea5"

def panel(left: float, top: float, title: str, axis: str, unit: str, drawn: dict[str, Line]) -> list[str]:
    sizes = [at for line in drawn.values() for at in line]
    costs = [cost for line in drawn.values() for cost in line.values()]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs) * 1.01))
    first, last = math.log10(max(min(sizes), 1)), math.log10(max(sizes))

    def across(at: int) -> float:
        return left + WIDTH * (math.log10(at) - first) / max(last - first, 1e-9)

    def down(cost: float) -> float:
        return top + HEIGHT * (high - math.log10(cost)) / max(high - low, 1)

    out = [f'<text x="{left}" y="{top - 24}" class="title">{title}</text><text x="{left}" y="{top - 9}" class="small">{unit}</text>']
    for power in range(low, high + 1):
        y = down(10**power)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" class="grid"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" class="left">{10**power:,}</text>')
    few = len(set(sizes)) <= 6
    for at in sorted(set(sizes)):
        if few or math.log10(at) % 1 < 1e-9:
            out.append(f'<text x="{across(at):.1f}" y="{top + HEIGHT + 16}" class="below">{at:,}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT + 34}" class="below">{axis}</text>')
    for name, line in drawn.items():
        colour, dashes = (DARK, ' stroke-dasharray="5 4"') if name == REQUEST else (COLOURS[name], "")
        path = " ".join(f"{across(at):.1f},{down(cost):.1f}" for at, cost in line.items())
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for at, cost in line.items():
            out.append(f'<circle cx="{across(at):.1f}" cy="{down(cost):.1f}" r="3" fill="{colour}"><title>{name}: {cost:,.1f} at {at:,}</title></circle>')
    return out


def positive(lines: dict[str, Line]) -> dict[str, Line]:
    """A logarithm wants more than nothing: memory that was there before shows as none."""
    kept = {name: {at: cost for at, cost in line.items() if cost > 0} for name, line in lines.items() if name in COLOURS}
    return {name: line for name, line in kept.items() if line}


def bytes_of(rows: list[Row], held, sent) -> dict[str, Line]:
    requests = curves(rows, sent).get("cepa")
    return positive(curves(rows, held)) | ({REQUEST: requests} if requests else {})


def growth(rows: list[Row]) -> str | None:
    """The picture, if there is anything to draw."""
    turn, call, kib = "CPU µs / turn", "CPU µs / model call", "KiB: memory, and a request (dashed)"
    columns = [
        (
            ("History", "messages before the turn", turn, positive(curves(rows, along("history", "us")))),
            ("", "messages before the turn", kib, bytes_of(rows, held_along, sent_along)),
        ),
        (
            ("Conversations", "conversations in memory", turn, positive(curves(rows, among(CONVERSATIONS, value("us"))))),
            ("", "conversations in memory", kib, bytes_of(rows, among(CONVERSATIONS, value("held_bytes", 1024)), among(CONVERSATIONS, SENT))),
        ),
        (
            ("Tools", "tools offered", call, positive(curves(rows, among(TOOLS, per("cpu_us", "calls"))))),
            ("", "tools offered", kib, bytes_of(rows, among(TOOLS, value("held_bytes", 1024)), among(TOOLS, SENT))),
        ),
    ]
    columns = [column for column in columns if any(panel[3] for panel in column)]
    if not columns:
        return None
    row = TOP + HEIGHT + 50
    width, height = LEFT + len(columns) * (WIDTH + GAP), 2 * row + 26
    style = (
        "text{font:12px sans-serif;fill:#444}.title{font-weight:bold;font-size:14px}.small{font-size:11px}"
        ".left{text-anchor:end}.below{text-anchor:middle}.grid{stroke:#ddd}"
    )
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">']
    out.append(f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>')
    for across, column in enumerate(columns):
        for down, (title, axis, unit, drawn) in enumerate(column):
            if drawn:
                out += panel(LEFT + across * (WIDTH + GAP), TOP + down * row, title, axis, unit, drawn)
    for index, (name, colour) in enumerate((COLOURS | {REQUEST: DARK}).items()):
        x, y = LEFT + index * 110, height - 14
        out.append(f'<rect x="{x}" y="{y - 9}" width="18" height="4" fill="{colour}"/><text x="{x + 24}" y="{y}">{name}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
