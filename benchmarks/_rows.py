"""A row of the summary: what is ours, the floor or peer of the same run, and whether the bound is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from attrs import asdict, frozen


@frozen
class Row:
    """One claim of DESIGN section 16.

    Attributes:
        name: what is measured.
        ours: our figure.
        unit: its unit; ``µs``, ``ms``, ``s`` and ``MB`` are to be small, everything with ``/s`` is to be large.
        floor: the floor's or peer's figure in the same unit; ``None``: the bound is for ``ours`` itself, or there is
            no such peer on this machine.
        bound: of the ratio of ours to the floor, or of ours where ``is_absolute``.
        is_absolute: whether the bound is for ``ours`` itself.
        ratio: where it was taken round by round; otherwise that of the two figures.
        note: what the floor is, or why it is missing.
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
        """Whether more is better."""
        return "/s" in self.unit

    @property
    def share(self) -> float | None:
        """Ours as a multiple of the floor."""
        if self.ratio is not None or self.floor is None:
            return self.ratio
        return self.ours / self.floor

    @property
    def reached(self) -> bool | None:
        """Whether the bound is kept; ``None`` if there is nothing to compare."""
        value = self.ours if self.is_absolute else self.share
        if value is None or self.bound is None:
            return None
        return value >= self.bound if self.is_rate else value <= self.bound

    def as_dict(self) -> dict[str, Any]:
        """As it is printed with ``--json``."""
        return {**asdict(self), "ratio": self.share, "reached": self.reached}


def report(rows: Iterable[Row], **details: Any) -> None:
    """Print one line of JSON: the rows, and the figures beside them."""
    print(json.dumps({"rows": [row.as_dict() for row in rows], **details}), flush=True)


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    started = perf_counter()
    call()
    return perf_counter() - started


def ratio_of(ours: Sequence[float], floor: Sequence[float]) -> float:
    """The median of the ratios of rounds that were taken in turn, so that other load hits both."""
    return median(one / least for one, least in zip(ours, floor, strict=True))


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """The summary, for people."""
    lines = [("what", "ours", "floor or peer", "ratio", "bound", "")]
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
                {True: "reached", False: "not yet", None: row["note"] or "no bound"}[row["reached"]],
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
