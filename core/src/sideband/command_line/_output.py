"""Text and JSON on standard output, and notices on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO
from unicodedata import east_asian_width

from ..rendering import MARK, indented, render
from ._json import json_text


def marked(lines: Iterable[str], stream: TextIO) -> list[str]:
    """Return lines with the mark of sideband's own lines, if the stream is a terminal. Rendered text has no mark."""
    return [f"{MARK} {line}" for line in lines] if stream.isatty() else list(lines)


_COPIED = "hint: "
_LEAST_WIDTH = 20
_unfinished: list[Callable[[], None]] = []
"""Ends the unfinished line at the terminal, if there is one."""


def on_notice(end_line: Callable[[], None] | None) -> None:
    """Set the function that ends an unfinished line before a message is printed; ``None`` without such a line."""
    _unfinished[:] = [] if end_line is None else [end_line]


def notice(text: str) -> None:
    """Print a message to standard error, on its own line."""
    for end_line in tuple(_unfinished):
        end_line()
    write_message(text)


def write_message(text: str) -> None:
    """Write a message to standard error. At a terminal, its lines are broken between words."""
    lines = indented(text)
    if columns := _width_of(sys.stderr):
        width = max(columns - len(MARK) - 1, _LEAST_WIDTH)
        lines = [row for line in lines for row in _rows(line, width)]
    sys.stderr.write("".join(f"{line}\n" for line in marked(lines, sys.stderr)))


def _width_of(stream: TextIO) -> int:
    """Return the columns of a terminal; 0 if it is not a terminal, or its width is unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def _rows(line: str, width: int) -> list[str]:
    """Break a line between words. A word that is too long, and a hint, which may be copied, stay in one piece."""
    if _columns(line) <= width or line.startswith(_COPIED):
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")))
    first, *words = line.lstrip(" ").split(" ")
    rows = [indent + first]
    for word in words:
        if _columns(rows[-1]) + 1 + _columns(word) <= width:
            rows[-1] += f" {word}"
        else:
            rows.append(f"{indent}  {word}")
    return rows


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(1 + (east_asian_width(one) in "WF") for one in text)


def print_json(data: Any) -> None:
    """Print data as one JSON document; bytes as ``{"__bytes__": base64}``."""
    sys.stdout.write(json_text(data, sys.stdout, indent=2) + "\n")


def print_data(arguments: Any, data: Any, text: str) -> None:
    """Print ``data`` if ``--json`` was given, else ``text``."""
    if arguments.json:
        print_json(data)
    else:
        print_text(text)


def joined(lines: Iterable[str]) -> str:
    """Join lines. A line feed in one of them becomes a space, so that no value can add a line."""
    return "\n".join(line.replace("\r", " ").replace("\n", " ") for line in lines)


def print_text(text: str) -> None:
    """Print text to standard output."""
    sys.stdout.write(render(text, prose=True) + "\n")
