"""A long text cut so that its head and its tail remain, and JSON remains JSON."""

from __future__ import annotations

from attrs import frozen

from .._history import CHARACTERS_PER_TOKEN
from ._graphemes import nearest_boundary
from ._json_truncation import cut_json


@frozen
class Cut:
    """What is shown of a text.

    Attributes:
        text: the part, with a note where something is missing.
        omitted: about how many characters are missing; 0 if nothing is.
    """

    text: str
    omitted: int = 0


def cut(text: str, tokens: int, *, handle: str | None = None) -> Cut:
    """The head and the tail of a text that has more than so many tokens, estimated.

    Text is cut at the ends of lines where some are near. A JSON object or list remains valid JSON: long strings, lists
    and objects in it are cut, and the head and the tail of each are kept. Takes time in proportion to the text.

    Args:
        text: the text.
        tokens: how many tokens may remain. Only where the note itself is longer does more remain.
        handle: what the whole text can be read with, named in the note.

    Example:
        >>> print(cut("x" * 80, 17).text)
        xxxxxxxxxxxx
        [… 57 of 80 characters are left out here …]
        xxxxxxxxxxx
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
    where = "" if handle is None else f"; the whole is the output `{handle}`"
    return f"[… {omitted:,} of {total:,} characters are left out here{where} …]"


def _cut_lines(text: str, longest: int, handle: str | None) -> Cut:
    note = f"\n{_note(len(text), len(text), handle)}\n"  # no shorter than with the final number
    room = max(0, longest - len(note))
    head = _head_end(text, room - room // 2)
    tail = _tail_start(text, len(text) - room // 2)
    note = f"\n{_note(tail - head, len(text), handle)}\n"
    return Cut(f"{text[:head]}{note}{text[tail:]}", tail - head)


def _head_end(text: str, at: int) -> int:
    """Where the head ends: at a line's end in its last quarter, else between two characters as people see them."""
    line = text.rfind("\n", at - at // 4, at)
    return line + 1 if line >= 0 else nearest_boundary(text, at, -1)


def _tail_start(text: str, at: int) -> int:
    line = text.find("\n", at, at + (len(text) - at) // 4)
    return line + 1 if line >= 0 else nearest_boundary(text, at, 1)
