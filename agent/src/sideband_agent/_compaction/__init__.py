"""Compaction: when a conversation is compacted, where it is cut, and what is listed with the summary."""

from ._compactor import Compactor
from ._file_lists import with_file_lists, without_file_lists
from ._preparation import sliding_window

__all__ = ["Compactor", "sliding_window", "with_file_lists", "without_file_lists"]
