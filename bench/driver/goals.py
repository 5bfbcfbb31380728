"""Figures of runs, and the goals for them."""

import dataclasses
import statistics
from collections.abc import Callable

Row = dict
Figure = Callable[[Row], float | None]
Metric = tuple[str, Figure, int]


def per(key: str, of: str, scale: float = 1) -> Figure:
    return lambda row: row[key] / row[of] / scale if row.get(key) is not None and row.get(of) else None


def value(key: str, scale: float = 1) -> Figure:
    return lambda row: row[key] / scale if row.get(key) is not None else None


def above(bytes: int) -> Figure:
    """What a kept conversation takes beyond so many bytes, against the JSON that would be stored of it."""
    return lambda row: (row["resident_bytes"] - bytes) / row["stored_bytes"] if row.get("stored_bytes") else None


def median(rows: list[Row], client: str, figure: Figure) -> float | None:
    """Of the runs that went well, with nothing counted."""
    good = (row for row in rows if row["client"] == client and not row["counted"] and "error" not in row)
    found = [at for at in map(figure, good) if at is not None]
    return statistics.median(found) if found else None


def ratio(figure: Figure, to: str = "bare") -> Callable[[list[Row]], float | None]:
    def of(rows: list[Row]) -> float | None:
        ours, theirs = median(rows, "cepa", figure), median(rows, to, figure)
        return ours / theirs if ours is not None and theirs else None

    return of


def own(figure: Figure, client: str = "cepa") -> Callable[[list[Row]], float | None]:
    return lambda rows: median(rows, client, figure)


def flatness(rows: list[Row]) -> float | None:
    """How a turn's cost grows once what must be copied and sent is taken off: `bare-hyper` does nothing else."""
    first, last = (
        [median(rows, client, value(key)) for client in ("cepa", "bare-hyper")] for key in ("first_us", "last_us")
    )
    if None in first or None in last or first[0] <= first[1]:
        return None
    return max(last[0] - last[1], 0) / (first[0] - first[1])


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure of cepa's that is to be no more than so much."""

    what: str
    of: Callable[[list[Row]], float | None]
    at_most: float

    def said(self, rows: list[Row]) -> tuple[str, str, str, str] | None:
        """What, how much at most, how much it is, whether it is met."""
        found = self.of(rows)
        if found is None:
            return None
        return self.what, f"{self.at_most:g}", f"{found:.2f}", "yes" if found <= self.at_most else "**no**"
