"""Sessions: conversations as append-only trees in a store, durable, with one writer each."""

from ._copies import Format, Position
from ._entries import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    ForeignEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RunEntry,
    RunState,
    ThinkingEntry,
    new_id,
)
from ._errors import (
    EntryAmbiguous,
    EntryNotFound,
    SessionAmbiguous,
    SessionClosed,
    SessionError,
    SessionFileExists,
    SessionLocked,
    SessionNotFound,
    SessionUnreadable,
)
from ._info import SessionInfo
from ._jsonl import read_file, write_file
from ._session import Session
from ._sessions import Sessions
from ._tree import SessionContext, SessionTree

__all__ = [
    "BranchSummaryEntry",
    "ChannelEntry",
    "CompactionEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Entry",
    "EntryAmbiguous",
    "EntryNotFound",
    "ForeignEntry",
    "Format",
    "LabelEntry",
    "LeafEntry",
    "MessageEntry",
    "ModelEntry",
    "NameEntry",
    "Position",
    "RunEntry",
    "RunState",
    "Session",
    "SessionAmbiguous",
    "SessionClosed",
    "SessionContext",
    "SessionError",
    "SessionFileExists",
    "SessionInfo",
    "SessionLocked",
    "SessionNotFound",
    "SessionTree",
    "SessionUnreadable",
    "Sessions",
    "ThinkingEntry",
    "new_id",
    "read_file",
    "write_file",
]
