"""A row of the summary: our figure, the floor or peer of the same run, and whether the bound is met."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from attrs import asdict, frozen


@frozen
class Row:
    """One performance claim of the design.

    Attributes:
        name: the name of the measurement.
        ours: our figure.
        unit: its unit. Figures in ``µs``, ``ms``, ``s`` and ``MB`` should be small, those in ``/s`` large.
        floor: the figure of the floor or peer in the same unit; ``None`` if ``is_absolute``, or if the peer is not
            installed.
        bound: the limit for the ratio of ``ours`` to ``floor``, or for ``ours`` if ``is_absolute``.
        is_absolute: whether the bound applies to ``ours`` itself.
        ratio: the ratio, if it was computed per round; otherwise, it is computed from the two figures.
        note: a description of the floor, or the reason why it is missing.
    """

    name: str
    ours: float
    unit: str
    floor: float | None = None
    bound: float | None = None
    is_absolute: bool = False
    ratio: float | None = None
    note: str = ""

    @property
    def is_rate(self) -> bool:
        """Whether higher figures are better."""
        return "/s" in self.unit

    @property
    def share(self) -> float | None:
        """The ratio of ``ours`` to ``floor``."""
        if self.ratio is not None or self.floor is None:
            return self.ratio
        return self.ours / self.floor

    @property
    def reached(self) -> bool | None:
        """Whether the bound is met, or ``None`` if there is nothing to compare."""
        value = self.ours if self.is_absolute else self.share
        if value is None or self.bound is None:
            return None
        return value >= self.bound if self.is_rate else value <= self.bound

    def as_dict(self) -> dict[str, Any]:
        """Return the row as printed with ``--json``."""
        return {**asdict(self), "ratio": self.share, "reached": self.reached}


def report(rows: Iterable[Row], **details: Any) -> None:
    """Print one line of JSON with the rows and further figures."""
    print(json.dumps({"rows": [row.as_dict() for row in rows], **details}), flush=True)


def seconds(call: Callable[[], object]) -> float:
    """Return the duration of one call."""
    started = perf_counter()
    call()
    return perf_counter() - started


def ratio_of(ours: Sequence[float], floor: Sequence[float]) -> float:
    """Return the median ratio of alternating rounds, which are affected equally by other load."""
    return median(one / least for one, least in zip(ours, floor, strict=True))


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Format the summary as a text table."""
    lines = [("benchmark", "sideband", "floor or peer", "ratio", "bound", "")]
    for row in rows:
        row = dict(row)  # noqa: PLW2901  read only
        unit, ratio = row["unit"], row["ratio"]
        sign = "≥" if "/s" in unit else "≤"
        bound = "" if row["bound"] is None else f"{sign} {row['bound']:g}{f' {unit}' if row['is_absolute'] else ' x'}"
        lines.append(
            (
                row["name"],
                f"{_figure(row['ours'])} {unit}",
                "" if row["floor"] is None else f"{_figure(row['floor'])} {unit}",
                "" if ratio is None else f"{ratio:.2f}",
                bound,
                {True: "met", False: "not met", None: row["note"] or "no bound"}[row["reached"]],
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
