"""Shorten long texts to their head and tail. JSON remains valid JSON."""

from __future__ import annotations

from attrs import frozen

from .._history import CHARACTERS_PER_TOKEN
from ._graphemes import nearest_boundary
from ._json_truncation import cut_json


@frozen
class Cut:
    """The visible part of a text.

    Attributes:
        text: the part, with a note where characters were omitted.
        omitted: the approximate number of omitted characters.
    """

    text: str
    omitted: int = 0


def cut(text: str, tokens: int, *, handle: str | None = None) -> Cut:
    """Shorten a text with more than ``tokens`` estimated tokens to its head and its tail.

    Text is cut at line ends where some are near. A JSON object or list remains valid JSON: long strings, lists and
    objects in it are shortened to their head and tail. Takes time linear in the length of the text.

    Args:
        text: the text.
        tokens: the maximum number of tokens, exceeded only if the note itself is longer.
        handle: the handle of the full text, named in the note.

    Example:
        >>> print(cut("x" * 80, 17).text)
        xxxxxxxxxxxxxxxxx
        [… 47 of 80 characters omitted …]
        xxxxxxxxxxxxxxxx
    """
    longest = max(0, tokens) * CHARACTERS_PER_TOKEN
    if len(text) <= longest:
        return Cut(text)
    if text.lstrip()[:1] in ("{", "["):
        found = cut_json(text, longest, handle=handle)
        if found is not None:
            return Cut(*found)
    return _cut_lines(text, longest, handle)


def _note(omitted: int, total: int, handle: str | None) -> str:
    where = "" if handle is None else f"; the full text is the output `{handle}`"
    return f"[… {omitted:,} of {total:,} characters omitted{where} …]"


def _cut_lines(text: str, longest: int, handle: str | None) -> Cut:
    note = f"\n{_note(len(text), len(text), handle)}\n"  # at least as long as with the final number
    room = max(0, longest - len(note))
    head = _head_end(text, room - room // 2)
    tail = _tail_start(text, len(text) - room // 2)
    note = f"\n{_note(tail - head, len(text), handle)}\n"
    return Cut(f"{text[:head]}{note}{text[tail:]}", tail - head)


def _head_end(text: str, at: int) -> int:
    """Return the end of the head: a line end in its last quarter, otherwise the end of a grapheme cluster."""
    line = text.rfind("\n", at - at // 4, at)
    return line + 1 if line >= 0 else nearest_boundary(text, at, -1)


def _tail_start(text: str, at: int) -> int:
    line = text.find("\n", at, at + (len(text) - at) // 4)
    return line + 1 if line >= 0 else nearest_boundary(text, at, 1)
