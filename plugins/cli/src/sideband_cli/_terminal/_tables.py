"""Tables and paragraphs that fit the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sideband.command_line import json_default
from sideband.rendering import render

from ._columns import broken, fitted, terminal_width
from ._columns import columns as columns_of

_MIN_WIDTH = 8


def paragraph(text: str, indent: str = "", hanging: str | None = None, *, width: int | None = None) -> str:
    """Wrap text to a width, by default that of the terminal, with ``indent`` before the first line.

    Args:
        text: the text.
        indent: the indentation of the first line.
        hanging: the indentation of the others; ``None`` means ``indent``.
        width: the width in columns.
    """
    from textwrap import fill  # slow to import, and a table needs none

    return fill(
        render(text, prose=True),
        width or terminal_width(),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
    )


def first_sentence(doc: str) -> str:
    """Return the first sentence of a docstring on one line."""
    text = " ".join(doc.partition("\n\n")[0].split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def format_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, wrapped: bool = False, width: int | None = None
) -> str:
    """Format rows as a table that fits the terminal, by narrowing the widest columns.

    Args:
        columns: the names of the columns.
        rows: the rows, with a value for each column.
        wrapped: whether to wrap the last column instead of cutting it.
        width: the width of the table in columns, by default that of the terminal.

    Example:
        >>> print(format_table(["a", "b"], [[1, "x"], [22, "y"]]))
        a   b
        --  -
        1   x
        22  y
    """
    names, *texts = [[_cell(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(columns_of(row[i]) for row in (names, *texts)) for i in range(len(names))]
    room = (width or terminal_width()) - 2 * (len(columns) - 1)
    while sum(widths) > room and max(widths) > _MIN_WIDTH:
        widest = widths.index(max(widths))
        widths[widest] = max(_MIN_WIDTH, widths[widest] - (sum(widths) - room))
    if wrapped:
        texts = [line for row in texts for line in _wrapped(row, widths[-1])]
    lines = [names, ["-" * most for most in widths], *texts]
    return "\n".join(
        "  ".join(_fit(cell, most) for cell, most in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _wrapped(row: list[str], width: int) -> list[list[str]]:
    first, *more = broken(
        " ".join(row[-1].split()), max(width, 1)
    )  # the width of a column without name and values is 0
    return [[*row[:-1], first], *([""] * (len(row) - 1) + [line] for line in more)]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=json_default)
    return render(text, prose=True).replace("\n", " ").replace("\t", " ")


def _fit(text: str, width: int) -> str:
    text = fitted(text, width) if width else ""
    return text + " " * (width - columns_of(text))
