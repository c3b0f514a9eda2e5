"""Find positions at which a text can be cut without splitting a grapheme cluster."""

from __future__ import annotations

import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_LONGEST_CLUSTER = 32
_MAX_FLAGS = 10_000


def nearest_boundary(text: str, at: int, step: int) -> int:
    """Return the nearest position in one direction that does not split a grapheme cluster.

    Supports the common clusters: combining marks, joined emoji, skin tones, flags, surrogate pairs and CRLF. If a
    cluster is longer than 32 characters, returns ``at``.

    Args:
        text: the text.
        at: the wanted position.
        step: -1 to search backwards, 1 to search forwards.
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
    while count < _MAX_FLAGS and at > count and _is_flag_half(text[at - 1 - count]):
        count += 1
    return count
