"""What grows with what: the points of the growing scenarios, for the tables, the picture and the model."""

import statistics
from collections.abc import Callable

import plan
from goals import Row, per, value

Line = dict[int, float]
Points = Callable[[Row], list[tuple[int, float]]]


def along(scenario: str, key: str) -> Points:
    """Of a conversation that grows: a figure at each length."""

    def points(row: Row) -> list[tuple[int, float]]:
        looks = row["curve"] if row["scenario"] == scenario else []
        return [(look["messages"], look[key]) for look in looks]

    return points


def among(prefix: str, figure: Callable[[Row], float | None]) -> Points:
    """Of scenarios whose names end with the size."""

    def points(row: Row) -> list[tuple[int, float]]:
        name = row["scenario"]
        at = figure(row) if name.startswith(prefix) else None
        return [(int(name.removeprefix(prefix)), at)] if at is not None else []

    return points


def curves(rows: list[Row], points_of: Points) -> dict[str, Line]:
    """The median at each size, for each client."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if "error" not in row and not row["counted"]:
            for at, figure in points_of(row):
                found.setdefault(row["client"], {}).setdefault(at, []).append(figure)
    lines = {name: {at: statistics.median(figures) for at, figures in sorted(line.items())} for name, line in found.items()}
    return {client.name: lines[client.name] for client in plan.RUST if client.name in lines}


KIB = 1024
SENT = per("request_bytes", "calls", KIB)


def held_along(row: Row) -> list[tuple[int, float]]:
    return [(at, bytes / KIB) for at, bytes in along("history", "held_bytes")(row)]


def sent_along(row: Row) -> list[tuple[int, float]]:
    return [(at, bytes / KIB) for at, bytes in along("history", "sent_bytes")(row)]


CONVERSATIONS, TOOLS = "conversations-", "tools-"
# Name, what is shown, its digits, and where it is.
DIMENSIONS: list[tuple[str, str, int, Points]] = [
    ("history", "CPU µs of a turn with so many messages before it", 0, along("history", "us")),
    ("history, sent", "KiB of a request with so many messages before the turn", 1, sent_along),
    ("history, memory", "KiB of memory that a conversation of so many messages takes", 0, held_along),
    ("conversations", "CPU µs of a turn with so many conversations in memory", 0, among(CONVERSATIONS, value("us"))),
    ("conversations, memory", "KiB of memory that so many conversations of one turn take", 0, among(CONVERSATIONS, value("held_bytes", KIB))),
    ("tools", "CPU µs of a model call with so many tools offered", 0, among(TOOLS, per("cpu_us", "calls"))),
    ("tools, sent", "KiB of a request with so many tools offered", 1, among(TOOLS, SENT)),
    ("tools, memory", "KiB of memory that an agent with so many tools and its first turn take", 0, among(TOOLS, value("held_bytes", KIB))),
]
