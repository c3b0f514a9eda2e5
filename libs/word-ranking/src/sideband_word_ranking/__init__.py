"""Rank short descriptions by the words of a text, with BM25."""

from ._version import __version__
from ._word_index import Entry, WordIndex

__all__ = ["Entry", "WordIndex", "__version__"]
