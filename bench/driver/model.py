"""A model of what more work would cost: constants fitted to the growing scenarios, and what a large machine would carry.

It is arithmetic on one machine's measurements. What it leaves out is said beside it.
"""

import dataclasses
import itertools

from curves import TOOLS, along, among, curves
from goals import Row, median, per, value

# How much of a core is used when it is busy enough and still answers at once.
USED = 0.7
CORES = 64
# Seconds that a model takes to answer.
THINKING = 2
NETWORK = 100e9  # bits a second of one machine
# Conversations that wait for a model at the same moment.
FLEET = 1_000_000

Sample = tuple[tuple[float, ...], float]


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    messages: int
    bytes: int
    tools: int


WORKLOADS = [
    Workload("chat", 20, 200, 0),
    Workload("agent", 60, 1_000, 20),
    Workload("long agent", 500, 2_000, 50),
    Workload("very long agent", 5_000, 2_000, 100),
]


def solved(rows: list[list[float]], right: list[float]) -> list[float] | None:
    """A small system of linear equations, by elimination."""
    size, matrix = len(right), [[*row, end] for row, end in zip(rows, right)]
    for at in range(size):
        best = max(range(at, size), key=lambda row: abs(matrix[row][at]))
        if abs(matrix[best][at]) < 1e-12:
            return None
        matrix[at], matrix[best] = matrix[best], matrix[at]
        matrix[at] = [cell / matrix[at][at] for cell in matrix[at]]
        for row in range(size):
            if row != at:
                matrix[row] = [cell - matrix[row][at] * ours for cell, ours in zip(matrix[row], matrix[at])]
    return [row[size] for row in matrix]


def fitted(samples: list[Sample]) -> list[float] | None:
    """Constant and slopes, none below zero, with the smallest relative errors."""
    samples = [(inputs, figure) for inputs, figure in samples if figure > 0]
    if not samples:
        return None
    inputs = len(samples[0][0])
    best: tuple[float, list[float]] | None = None
    for kept in itertools.chain.from_iterable(itertools.combinations(range(inputs), count) for count in range(inputs + 1)):
        # Both sides divided by the figure, so that a small one counts as much as a large one.
        lines = [[1 / figure, *(given[at] / figure for at in kept)] for given, figure in samples]
        squares = [[sum(line[a] * line[b] for line in lines) for b in range(len(kept) + 1)] for a in range(len(kept) + 1)]
        found = solved(squares, [sum(line[a] for line in lines) for a in range(len(kept) + 1)])
        if not found or min(found) < 0:
            continue
        error = sum((sum(slope * cell for slope, cell in zip(found, line)) - 1) ** 2 for line in lines)
        if best is None or error < best[0] - 1e-9:
            slopes = dict(zip(kept, found[1:]))
            best = error, [found[0], *(slopes.get(at, 0.0) for at in range(inputs))]
    return best[1] if best else None


@dataclasses.dataclass(frozen=True)
class Costs:
    """Of one client: µs of CPU and bytes of memory."""

    call: float  # a model call, with the round of the tool
    message: float  # each message that is already there
    byte: float  # each byte that is sent
    tool: float  # each tool offered, with its bytes
    held: float | None  # a conversation that is kept
    held_message: float
    held_byte: float
    request: float  # bytes of a request without messages
    tool_bytes: float

    def us(self, work: Workload) -> float:
        sent = self.request + work.messages * work.bytes
        return self.call + self.message * work.messages + self.byte * sent + self.tool * work.tools

    def sent(self, work: Workload) -> float:
        return self.request + work.messages * work.bytes + self.tool_bytes * work.tools

    def memory(self, work: Workload) -> float:
        return (self.held or 0) + work.messages * (self.held_message + self.held_byte * work.bytes)


def line_of(rows: list[Row], client: str, points) -> dict[int, float]:
    return curves(rows, points).get(client, {})


def memory(rows: list[Row], client: str) -> tuple[float, float]:
    """Bytes of memory for each message, and for each byte of it: from the longest conversation of either kind."""
    ends = []
    for scenario in ("history", "history2k"):
        held, sent = (line_of(rows, client, along(scenario, key)) for key in ("held_bytes", "sent_bytes"))
        at, first = max(held), min(sent)
        ends.append((held[at] / at, (sent[at] - sent[first]) / max(at - first, 1)))
    (short, few), (long, many) = ends
    byte = max((long - short) / (many - few), 0)
    return max(short - byte * few, 0), byte


def costs(rows: list[Row], client: str) -> Costs | None:
    """What the scenarios say, if they have all been measured."""
    samples: list[Sample] = []
    for scenario in ("history", "history2k"):
        us, sent = (line_of(rows, client, along(scenario, key)) for key in ("us", "sent_bytes"))
        samples += [((at, sent[at]), us[at]) for at in us]
    by_tools = line_of(rows, client, among(TOOLS, per("cpu_us", "calls")))
    bytes_by_tools = line_of(rows, client, among(TOOLS, per("request_bytes", "calls")))
    history, tools = fitted(samples), fitted([((at,), us) for at, us in by_tools.items()])
    if not history or not tools or not line_of(rows, client, along("history2k", "us")):
        return None
    _, message, byte = history
    held_message, held_byte = memory(rows, client)
    few, many = min(bytes_by_tools), max(bytes_by_tools)
    tool_bytes = (bytes_by_tools[many] - bytes_by_tools[few]) / max(many - few, 1)
    request = median(rows, client, lambda row: row["curve"][0]["sent_bytes"] if row["scenario"] == "history" else None)
    idle = median([row for row in rows if row["scenario"] == "idle"], client, value("resident_bytes"))
    sent = line_of(rows, client, along("history", "sent_bytes"))
    each = (sent[max(sent)] - sent[min(sent)]) / max(max(sent) - min(sent), 1)
    held = None if idle is None else max(idle - 20 * (held_message + held_byte * each), 0)
    # What is sent before the first message of the history counts as bytes too.
    request = max((request or 0) - each * 10, 0)
    return Costs(max(tools[0] - byte * request, 0), message, byte, tools[1], held, held_message, held_byte, request, tool_bytes)


def short(figure: float) -> str:
    """Three digits."""
    for scale, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if figure >= scale:
            return f"{figure / scale:.3g}{unit}"
    return f"{figure:.3g}"


def section(report: dict) -> list[str]:
    rows = report["runs"]
    found = {client: costs(rows, client) for client in ("bare", "cepa")}
    found = {client: cost for client, cost in found.items() if cost}
    if "cepa" not in found:
        return ["Not measured yet: it takes the scenarios `growth` and `idle`."]
    lines = ["| fitted | a model call, µs | + each message in the history, ns | + each byte sent, ns | + each tool offered, µs | a conversation kept, bytes | + each message of it | + each byte of it |"]
    lines.append("|---" * 8 + "|")
    for client, cost in found.items():
        held = "" if cost.held is None else f"{cost.held:,.0f}"
        figures = (f"{cost.call:.1f}", f"{cost.message * 1e3:.1f}", f"{cost.byte * 1e3:.2f}", f"{cost.tool:.2f}")
        lines.append(f"| {client} | {' | '.join(figures)} | {held} | {cost.held_message:,.0f} | {cost.held_byte:.2f} |")
    ours = found["cepa"]
    lines += ["", f"| work of cepa | messages × bytes, tools | CPU µs a call | calls a second on {CORES} cores | waiting for a model then | their memory | machines for {FLEET:,} waiting, by CPU | by the network |"]
    lines.append("|---" * 8 + "|")
    for work in WORKLOADS:
        a_second = CORES * USED * 1e6 / ours.us(work)
        waiting = a_second * THINKING
        cells = (
            f"{work.messages:,} × {work.bytes:,}, {work.tools}",
            f"{ours.us(work):,.0f}",
            short(a_second),
            short(waiting),
            short(waiting * ours.memory(work)) + "B",
            f"{FLEET / waiting:,.1f}",
            f"{FLEET / THINKING * ours.sent(work) * 8 / NETWORK:,.1f}",
        )
        lines.append(f"| {work.name} | {' | '.join(cells)} |")
    return lines
