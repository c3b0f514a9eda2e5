"""Which texts fit a query best."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing

_WORD = re.compile(r"[^\W_]+")
_SHORTEST_STEM = 3
_LONGEST_ENDING = 3


def ranked(texts: Iterable[tuple[str, str]], query: str) -> list[int]:
    """Return the positions of the texts that share a word with a query, the best first. Blocks if they are long.

    Args:
        texts: their names and contents. A word in a name counts more.
        query: the query. Words are compared by their stems.
    """
    from sideband_word_ranking import WordIndex  # noqa: PLC0415  at the first search

    with closing(WordIndex(texts)) as index:
        return index.rank(query, common=True)


def beginnings(query: str) -> list[str]:
    """Return the beginnings of the words of a query, with which other forms of them begin too, in lower case.

    Example:
        >>> beginnings("How to release?")
        ['how', 'to', 'rele']
    """
    words = _WORD.findall(query.lower())
    return list(dict.fromkeys(one[: max(_SHORTEST_STEM, len(one) - _LONGEST_ENDING)] for one in words))
