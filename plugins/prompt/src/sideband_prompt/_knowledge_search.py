"""Search documents by words. A match in a title counts more than one in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anyio import from_thread
from attrs import frozen

from ._knowledge import KnowledgeDocument, Library
from ._text import one_line

_WORD = re.compile(r"\w+")
_MAX_WORDS = 20
_MAX_CHARACTERS = 16 << 20
_HIGHEST_COUNT = 10
_IN_TITLE, _IN_TAGS, _IN_PATH = 20, 15, 10
_EXCERPT = 200


@frozen
class KnowledgeMatch:
    """A document that contains some of the words.

    Attributes:
        document: the document.
        words: the number of distinct words that it contains.
        score: the weighted number of matches.
        excerpt: the first line of its text that contains one of them; empty if only its metadata matches.
    """

    document: KnowledgeDocument
    words: int
    score: int
    excerpt: str


def search(library: Library, query: str, limit: int) -> tuple[list[KnowledgeMatch], int]:
    """Find the documents that contain at least one word of ``query``, best first. Call it in a thread.

    Args:
        library: the documents.
        query: words; at most 20 are used.
        limit: the number of bytes read from each document.

    Returns:
        The matches, and how many documents were searched by metadata only because the total size is limited.
    """
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:_MAX_WORDS]
    found: list[KnowledgeMatch] = []
    left = _MAX_CHARACTERS
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
