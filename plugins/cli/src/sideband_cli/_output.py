"""What people and programs read: tables and JSON on standard output, progress and notices on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill, wrap
from typing import Any

__all__ = [
    "Progressbar",
    "clean",
    "escape_controls",
    "first_sentence",
    "format_table",
    "how_far",
    "notice",
    "paragraph",
    "print_data",
    "print_json",
    "print_result",
    "terminal_width",
]

_NARROWEST = 8
# Beside the control characters those that turn the direction of a line, and so can show it as another.
_CONTROL = {
    code: "�"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if code not in (9, 10)
}
# JSON itself escapes only the first half of the control characters.
_ESCAPED = {code: f"\\u{code:04x}" for code in range(127, 160)}


def clean(text: str) -> str:
    """Text without control characters: what a skill or a server says must not move the cursor."""
    return text.translate(_CONTROL)


def notice(text: str) -> None:
    """Tell something beside the result."""
    sys.stderr.write(clean(text) + "\n")


def print_json(data: Any) -> None:
    """Print data as one JSON document; bytes as ``{"__bytes__": base64}``."""
    as_ascii = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    text = json.dumps(data, ensure_ascii=as_ascii, indent=2, default=_encode)
    sys.stdout.write(escape_controls(text) + "\n")


def escape_controls(text: str) -> str:
    """JSON text in which no control character is left as it is."""
    return text.translate(_ESCAPED)


def print_data(arguments: Any, data: Any, text: str) -> None:
    """Print ``data`` if ``--json`` was given, else ``text``."""
    if arguments.json:
        print_json(data)
    else:
        sys.stdout.write(clean(text) + "\n")


def print_result(output: Any) -> None:
    """Print what an op or a tool returned: text as it is, rows as a table, the rest as JSON."""
    if isinstance(output, str):
        sys.stdout.write(clean(output) + "\n")
    elif isinstance(output, list) and output and all(isinstance(row, Mapping) for row in output):
        columns = list(dict.fromkeys(key for row in output for key in row))
        rows = [[_cell(row.get(column)) for column in columns] for row in output]
        sys.stdout.write(format_table(columns, rows) + "\n")
    else:
        sys.stdout.write(clean(json.dumps(output, ensure_ascii=False, indent=2, default=_encode)) + "\n")


def paragraph(text: str, indent: str = "", hanging: str | None = None) -> str:
    """Text in lines that fit the terminal, the first after ``indent``, the others after ``hanging``."""
    return fill(
        clean(text), terminal_width(), initial_indent=indent, subsequent_indent=indent if hanging is None else hanging
    )


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, also where it goes over several lines."""
    text = " ".join(doc.partition("\n\n")[0].split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, wrapped: bool = False) -> str:
    """Rows under their columns, no wider than the terminal: the widest column gives way.

    Args:
        columns: their names.
        rows: a value for each column.
        wrapped: whether the last column goes on below where it gives way, instead of being cut.

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
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] = max(_NARROWEST, widths[widest] - (sum(widths) - room))
    if wrapped:
        texts = [line for row in texts for line in _wrapped(row, widths[-1])]
    lines = [list(columns), ["-" * width for width in widths], *texts]
    return "\n".join(
        "  ".join(_fit(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _wrapped(row: list[str], width: int) -> list[list[str]]:
    first, *more = wrap(row[-1], max(width, 1)) or [""]  # a column without name and values has none
    return [[*row[:-1], first], *([""] * (len(row) - 1) + [line] for line in more)]


def terminal_width() -> int:
    """How many characters fit in a line; 100 where there is no terminal."""
    return shutil.get_terminal_size((100, 24)).columns


def how_far(current: float, total: float | None) -> str:
    """``2,159,620/3,000,000``: in full, also what counts bytes."""
    return f"{current:,.12g}" + (f"/{total:,.12g}" if total is not None else "")


class Progressbar:
    """Shows progress on standard error: one line that is rewritten on a terminal, else a line for each message."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0

    def show(self, progress: Any) -> None:
        """Show one ``Progress``."""
        parts = []
        if progress.current is not None:
            parts.append(how_far(progress.current, progress.total))
        if progress.message:
            parts.append(clean(progress.message))
        self.line(" ".join(parts))

    def line(self, text: str) -> None:
        """Show one line in place of the last."""
        if not self._live:
            sys.stderr.write(f"… {text}\n")
            return
        text = text[: shutil.get_terminal_size().columns - 3].replace("\n", " ")
        sys.stderr.write(f"\r… {text}{' ' * (self._shown - len(text))}")
        sys.stderr.flush()
        self._shown = len(text)

    def notice(self, text: str) -> None:
        """Tell something else, on a line of its own."""
        self.close()
        notice(text)

    def erase(self) -> None:
        """Take the line away."""
        if self._live and self._shown:
            sys.stderr.write(f"\r{' ' * (self._shown + 2)}\r")
            sys.stderr.flush()
            self._shown = 0

    def close(self) -> None:
        """Leave the line."""
        if self._live and self._shown:
            sys.stderr.write("\n")
            self._shown = 0


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_encode)


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"__bytes__": b64encode(value).decode()}
    return str(value)
