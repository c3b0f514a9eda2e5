"""Sessions: conversations stored durably as append-only trees, with one writer each."""

from ._copies import Position
from ._errors import (
    EntryAmbiguous,
    EntryNotFound,
    SessionAmbiguous,
    SessionClosed,
    SessionError,
    SessionFileExists,
    SessionFormatMissing,
    SessionLocked,
    SessionNotFound,
    SessionTooNew,
    SessionUnreadable,
)
from ._foreign_formats import SessionFormat
from ._format import (
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
    SessionHeader,
    ThinkingEntry,
    new_id,
    record_of,
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
    "SessionFormat",
    "SessionFormatMissing",
    "SessionHeader",
    "SessionInfo",
    "SessionLocked",
    "SessionNotFound",
    "SessionTooNew",
    "SessionTree",
    "SessionUnreadable",
    "Sessions",
    "ThinkingEntry",
    "new_id",
    "read_file",
    "record_of",
    "write_file",
]
