"""Finds a pattern in a long text, in time that grows with the text alone: patterns come from models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_AROUND = 100
_LONGEST = 400
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Match(NamedTuple):
    """Where a pattern was found: from ``start`` up to ``end``, in characters."""

    start: int
    end: int


def search(text: str, pattern: str) -> Iterator[Match]:
    r"""The places where ``pattern`` is found, from the first to the last; none overlaps another.

    Args:
        text: where to look.
        pattern: text; ``*`` stands for anything within a line. Upper and lower case are the same.

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
            # What is not in the rest of the line after this place is not there after a later one either.
            at = line_end
        else:
            yield Match(start, end)
            at = end


def excerpt(text: str, match: Match) -> str:
    """A match with what stands around it in its line."""
    nearest = max(match.start - _AROUND, 0)
    start = max(text.rfind("\n", nearest, match.start) + 1, nearest)
    line_end = text.find("\n", match.end, match.end + _AROUND)
    end = min(len(text) if line_end < 0 else line_end, match.end + _AROUND, start + _LONGEST)
    return text[start:end]


def _end(text: str, at: int, line_end: int, pieces: list[str]) -> int | None:
    """Where the last of the pieces ends if they follow one another before the end of the line."""
    for piece in pieces:
        found = text.find(piece, at, line_end)
        if found < 0:
            return None
        at = found + len(piece)
    return at


def _folded(text: str, pattern: str) -> tuple[str, str]:
    """Both in lower case, each character still at its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower, pattern.lower()
    return text.translate(_LOWER), pattern.translate(_LOWER)
