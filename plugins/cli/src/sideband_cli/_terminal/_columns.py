"""The width of text at a terminal, and lines cut or broken to fit it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO
from unicodedata import category, east_asian_width

_FALLBACK = 100
_TAB = 4
_COPIED = ("hint: ", "to continue: ", "to resume ")
# The emoji block, of which older versions of Python know only a part.
_EMOJI = ("\U0001f000", "\U0001faff")


def columns(text: str) -> int:
    """Return the width of a text in columns. No terminal shows it wider, except for characters of ambiguous width.

    Example:
        >>> columns("notes"), columns("漢字"), columns("e\u0301")
        (5, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if character == "\ufe0f":  # makes the character before it one column wider
        return 1
    if east_asian_width(character) in "WF" or _EMOJI[0] <= character <= _EMOJI[1]:
        return 2
    return 0 if category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff" else 1


def terminal_width(stream: TextIO | None = None) -> int:
    """Return the width of the terminal in columns, or 100 without a terminal.

    Args:
        stream: the stream to the terminal, by default standard output.
    """
    if stream is not None and (width := _width_of(stream)):
        return width
    configured = os.environ.get("COLUMNS", "")
    return int(configured) if configured.isdecimal() and int(configured) else _width_of(sys.__stdout__) or _FALLBACK


def _width_of(stream: TextIO | None) -> int:
    """Return the width of a stream's terminal, or 0. The module `shutil`, which does the same, is slow to import."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream else 0
    except (OSError, ValueError):
        return 0  # not a terminal


def fitted(text: str, width: int | None = None) -> str:
    """Cut a line to a width, by default that of the terminal.

    Example:
        >>> fitted("one two", 5), fitted("漢字漢字", 5)
        ('one …', '漢字…')
    """
    room = width or max(1, terminal_width() - 1)  # some terminals add an empty line after a full one
    return text if columns(text) <= room else text[: fitting(text, room - 1)] + "…"


def fitting(text: str, width: int) -> int:
    """Return how many characters of a text fit."""
    used = 0
    for index, character in enumerate(text):
        used += columns(character)
        if used > width:
            return index
    return len(text)


def rows_of(lines: Iterable[str], width: int) -> list[str]:
    """Break the lines of a message, so that the terminal breaks none: each row can then have a mark or a margin.

    The rows of a line are indented as it is, and the others two more. What the user may copy stays in one piece.

    Example:
        >>> rows_of(["one two three", "  four five six"], 9)
        ['one two', '  three', '  four', '    five', '    six']
    """
    rows = []
    for line in lines:
        if line.startswith(_COPIED):
            rows.append(line)
            continue
        text = line.expandtabs(_TAB)
        indent = " " * min(len(text) - len(text.lstrip(" ")), max(0, width // 2 - 2))
        first, *_ = broken(text, max(1, width))
        rest = text[len(first) :].removeprefix(" ")
        rows += [first, *(f"{indent}  {row}" for row in broken(rest, max(1, width - len(indent) - 2)) if rest)]
    return rows


def broken(text: str, width: int) -> list[str]:
    """Break a line, between words if possible.

    Example:
        >>> broken("one two three", 8)
        ['one two', 'three']
    """
    lines = []
    while (fits := fitting(text, width)) < len(text):
        fits = max(1, fits)
        space = text.rfind(" ", 0, fits + 1)
        cut = space if text[: max(space, 0)].strip() else fits
        lines.append(text[:cut])
        text = text[cut:].removeprefix(" ")
    return [*lines, text]
