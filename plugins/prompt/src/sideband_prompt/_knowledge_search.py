"""Finds documents by words: counts them, where a title says more than a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anyio import from_thread
from attrs import frozen

from ._knowledge import KnowledgeDocument, Library
from ._text import one_line

_WORD = re.compile(r"\w+")
_MOST_WORDS = 20
_MOST_CHARACTERS = 16 << 20
_HIGHEST_COUNT = 10
_IN_TITLE, _IN_TAGS, _IN_PATH = 20, 15, 10
_EXCERPT = 200


@frozen
class KnowledgeMatch:
    """A document that has some of the words.

    Attributes:
        document: the document.
        words: how many of the words it has.
        score: how much it has of them.
        excerpt: the line of its text that has the first of them; empty if none has.
    """

    document: KnowledgeDocument
    words: int
    score: int
    excerpt: str


def search(library: Library, query: str, limit: int) -> tuple[list[KnowledgeMatch], int]:
    """Those documents that have at least one of the words of ``query``, the best first. Call it in a thread.

    Args:
        library: where to look.
        query: words; at most 20 count.
        limit: how many bytes of each document are read.

    Returns:
        What was found, and how many documents were not looked into because all together are too long.
    """
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:_MOST_WORDS]
    found: list[KnowledgeMatch] = []
    left = _MOST_CHARACTERS
    skipped = 0
    for document in library.documents:
        from_thread.check_cancelled()
        reading = document.read(limit) if left > 0 else None
        text = reading.text if reading else ""
        skipped += left <= 0
        left -= len(text)
        result = _look(document, text, words)
        if result.words:
            found.append(result)
    found.sort(key=lambda one: (-one.words, -one.score, one.document.rank))
    return found, skipped


def _look(document: KnowledgeDocument, text: str, words: Sequence[str]) -> KnowledgeMatch:
    folded = text.casefold()
    title, path, tags = document.title.casefold(), document.path.casefold(), " ".join(document.tags).casefold()
    scores = [
        min(folded.count(word), _HIGHEST_COUNT)
        + _IN_TITLE * (word in title)
        + _IN_TAGS * (word in tags)
        + _IN_PATH * (word in path)
        for word in words
    ]
    matched = [word for word, score in zip(words, scores, strict=True) if score]
    return KnowledgeMatch(document, len(matched), sum(scores), _excerpt(text, matched))


def _excerpt(text: str, words: Sequence[str]) -> str:
    lines = (line for line in text.splitlines() if any(word in line.casefold() for word in words))
    return one_line(next(lines, ""), _EXCERPT)
