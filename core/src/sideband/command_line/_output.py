"""Text and JSON on standard output, and notices on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from ..rendering import MARK, indented, render
from ._json import json_text


def marked(lines: Iterable[str], stream: TextIO) -> list[str]:
    """Return lines with the mark of sideband's own lines, if the stream is a terminal. Rendered text has no mark."""
    return [f"{MARK} {line}" for line in lines] if stream.isatty() else list(lines)


_unfinished: list[Callable[[], None]] = []
"""Ends the unfinished line at the terminal, if there is one."""


def on_notice(end_line: Callable[[], None] | None) -> None:
    """Set the function that ends an unfinished line before a message is printed; ``None`` without such a line."""
    _unfinished[:] = [] if end_line is None else [end_line]


def notice(text: str) -> None:
    """Print a message to standard error, on its own line."""
    for end_line in tuple(_unfinished):
        end_line()
    sys.stderr.write("".join(f"{line}\n" for line in marked(indented(text), sys.stderr)))


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
