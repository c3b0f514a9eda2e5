"""Tables and paragraphs that fit the terminal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from textwrap import fill, wrap
from typing import Any

from ._clean import clean, json_default

_MIN_WIDTH = 8


def paragraph(text: str, indent: str = "", hanging: str | None = None) -> str:
    """Wrap text to the terminal, with ``indent`` before the first line and ``hanging`` before the others."""
    return fill(
        clean(text), terminal_width(), initial_indent=indent, subsequent_indent=indent if hanging is None else hanging
    )


def first_sentence(doc: str) -> str:
    """Return the first sentence of a docstring on one line."""
    text = " ".join(doc.partition("\n\n")[0].split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, wrapped: bool = False) -> str:
    """Format rows as a table that fits the terminal, by narrowing the widest columns.

    Args:
        columns: the names of the columns.
        rows: the rows, with a value for each column.
        wrapped: whether to wrap the last column instead of cutting it.

    Example:
        >>> print(format_table(["a", "b"], [[1, "x"], [22, "y"]]))
        a   b
        --  -
        1   x
        22  y
    """
    texts = [[clean(_cell(cell)).replace("\n", " ").replace("\t", " ") for cell in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(columns)]
    room = terminal_width() - 2 * (len(columns) - 1)
    while sum(widths) > room and max(widths) > _MIN_WIDTH:
        widest = widths.index(max(widths))
        widths[widest] = max(_MIN_WIDTH, widths[widest] - (sum(widths) - room))
    if wrapped:
        texts = [line for row in texts for line in _wrapped(row, widths[-1])]
    lines = [list(columns), ["-" * width for width in widths], *texts]
    return "\n".join(
        "  ".join(_fit(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _wrapped(row: list[str], width: int) -> list[list[str]]:
    first, *more = wrap(row[-1], max(width, 1)) or [""]  # the width of a column without name and values is 0
    return [[*row[:-1], first], *([""] * (len(row) - 1) + [line] for line in more)]


def terminal_width() -> int:
    """Return the width of the terminal in characters, or 100 without a terminal."""
    return shutil.get_terminal_size((100, 24)).columns


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=json_default)


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"
