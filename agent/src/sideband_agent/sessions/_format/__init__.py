"""The storage format of sessions and its version.

A session is an append-only list of records, each a JSON object:

- The first one is the header (``_header``): ``type`` is ``session``, ``version`` is ``VERSION``.
- Each of the others is an entry (``_entries``): ``type`` is its type; ``id`` and ``parent`` form the tree.

``entry_of`` and ``header_of`` read records; ``record_of`` and ``SessionHeader.record`` write them. A header of a newer
version is rejected with ``SessionTooNew``. Damaged records are repaired in memory and reported (``_repair``).

In a store the records are one stream (``sessions/_session_store``); in a file each is one line
(``sessions/_session_files``). Separate packages provide the formats of other programs (``sessions/_foreign_formats``).
"""

from ._entries import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    ForeignEntry,
    GoalEntry,
    GoalStatus,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RouteEntry,
    RouteState,
    RunEntry,
    RunState,
    ThinkingEntry,
    entry_of,
    new_id,
    now,
    record_of,
)
from ._header import VERSION, SessionHeader, header_of, is_session_id
from ._repair import EntryReader, repaired

__all__ = [
    "VERSION",
    "BranchSummaryEntry",
    "ChannelEntry",
    "CompactionEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Entry",
    "EntryReader",
    "ForeignEntry",
    "GoalEntry",
    "GoalStatus",
    "LabelEntry",
    "LeafEntry",
    "MessageEntry",
    "ModelEntry",
    "NameEntry",
    "RouteEntry",
    "RouteState",
    "RunEntry",
    "RunState",
    "SessionHeader",
    "ThinkingEntry",
    "entry_of",
    "header_of",
    "is_session_id",
    "new_id",
    "now",
    "record_of",
    "repaired",
]
