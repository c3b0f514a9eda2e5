"""An index of names and descriptions. SQLite's full-text search ranks them with BM25."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing

Entry = tuple[str, str]
"""A name and a description."""

_MAX_WORDS = 64
_LONGEST_TEXT = 20_000
_LONGEST_WORD = 64
_NAME_WEIGHT = 4.0
_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces between words: each character is a word.
_UNSPACED = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_COMMON = frozenset(
    [
        "a",
        "about",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "get",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "let",
        "like",
        "make",
        "me",
        "my",
        "no",
        "not",
        "now",
        "of",
        "on",
        "or",
        "our",
        "please",
        "should",
        "so",
        "some",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "use",
        "used",
        "uses",
        "using",
        "want",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


class WordIndex:
    """An index of entries, in memory. Words are compared by their stems, without case and accents.

    Args:
        entries: the entries. A word in a name counts more than one in a description.

    Raises:
        sqlite3.OperationalError: if the SQLite of this Python has no full-text search.

    Example:
        >>> index = WordIndex([("mail_send", "Send a message."), ("git_log", "List the commits of a repository.")])
        >>> index.rank("What did the last commit change?")
        [1]
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(
            "CREATE VIRTUAL TABLE entry USING fts5(name, description, tokenize = 'porter unicode61', detail = column)"
        )
        rows = ((_spaced(name), _spaced(description)) for name, description in entries)
        self._database.executemany("INSERT INTO entry (name, description) VALUES (?, ?)", rows)

    def rank(self, text: str, *, common: bool = False) -> list[int]:
        """Return the positions of the entries that share a word with a text, the best first.

        Equal ones keep their order.

        Args:
            text: the text. Its last words count if it is long.
            common: whether words such as ``the`` count too, as in a query that a user has chosen the words of.
        """
        words = _words(text, common=common)
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words)
        statement = "SELECT rowid FROM entry WHERE entry MATCH ? ORDER BY bm25(entry, ?, 1.0), rowid"
        with closing(self._database.execute(statement, (query, _NAME_WEIGHT))) as rows:
            return [row - 1 for (row,) in rows]

    def close(self) -> None:
        """Free the memory of the index."""
        self._database.close()


def _words(text: str, *, common: bool) -> list[str]:
    """Return the last words of a text, each once, in a form that a query cannot misread."""
    found = [word.lower()[:_LONGEST_WORD] for word in _WORD.findall(_spaced(text[-_LONGEST_TEXT:]))]
    kept = dict.fromkeys(word for word in reversed(found) if common or word not in _COMMON)
    return list(kept)[:_MAX_WORDS]


def _spaced(text: str) -> str:
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)
