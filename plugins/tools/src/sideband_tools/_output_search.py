"""Search a long text in linear time, whatever the pattern: patterns come from models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_AROUND = 100
_LONGEST = 400
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Match(NamedTuple):
    """A match of a pattern, from ``start`` up to ``end``, in characters."""

    start: int
    end: int


def search(text: str, pattern: str) -> Iterator[Match]:
    r"""Yield the matches of ``pattern`` in order, without overlaps.

    Args:
        text: the text.
        pattern: the pattern; ``*`` matches anything within a line. Case is ignored.

    Example:
        >>> list(search("Error: no disk\nerror: no\n", "error*disk"))
        [Match(start=0, end=14)]
    """
    text, pattern = _folded(text, pattern)
    first, *more = [piece for piece in pattern.split("*") if piece] or [""]
    if not first:
        return
    at, line_end = 0, -1
    while (start := text.find(first, at)) >= 0:
        if start + len(first) > line_end:
            line_end = text.find("\n", start + len(first))
            line_end = len(text) if line_end < 0 else line_end
        end = _end(text, start + len(first), line_end, more)
        if end is None:
            # pieces missing in the rest of this line are missing after any later start in it too
            at = line_end
        else:
            yield Match(start, end)
            at = end


def excerpt(text: str, match: Match) -> str:
    """Return a match with its surroundings in the same line."""
    nearest = max(match.start - _AROUND, 0)
    start = max(text.rfind("\n", nearest, match.start) + 1, nearest)
    line_end = text.find("\n", match.end, match.end + _AROUND)
    end = min(len(text) if line_end < 0 else line_end, match.end + _AROUND, start + _LONGEST)
    return text[start:end]


def _end(text: str, at: int, line_end: int, pieces: list[str]) -> int | None:
    """Return the end of the last piece if all pieces follow in order on the line, otherwise ``None``."""
    for piece in pieces:
        found = text.find(piece, at, line_end)
        if found < 0:
            return None
        at = found + len(piece)
    return at


def _folded(text: str, pattern: str) -> tuple[str, str]:
    """Return both in lower case, with unchanged character positions."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower, pattern.lower()
    return text.translate(_LOWER), pattern.translate(_LOWER)
