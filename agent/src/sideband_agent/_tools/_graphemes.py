"""Where a text can be cut without splitting what people see as one character."""

from __future__ import annotations

import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_LONGEST_CLUSTER = 32
_MOST_FLAGS = 10_000


def nearest_boundary(text: str, at: int, step: int) -> int:
    """The nearest place in one direction that splits nothing that people see as one character.

    Knows the usual clusters: combining marks, joined and toned emoji, flags, pairs of surrogates, ends of lines. Gives
    up where a cluster is longer than 32 characters, and answers ``at`` then.

    Args:
        text: the text.
        at: where it would be cut.
        step: -1 to look before, 1 to look after.
    """
    for place in range(at, at + step * _LONGEST_CLUSTER, step):
        if not 0 < place < len(text) or not _is_inside_cluster(text, place):
            return min(max(place, 0), len(text))
    return at


def _is_inside_cluster(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if _ZERO_WIDTH_JOINER in (before, after) or (before, after) == ("\r", "\n"):
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    return _is_flag_half(after) and _flag_halves_before(text, at) % 2 == 1


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, at: int) -> int:
    count = 0
    while count < _MOST_FLAGS and at > count and _is_flag_half(text[at - 1 - count]):
        count += 1
    return count
