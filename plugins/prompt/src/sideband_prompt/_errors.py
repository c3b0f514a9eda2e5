"""Errors of this plugin's tools. The model reads these messages.

SidebandError
└── PromptError                              prompt.failed
    ├── MemoryFull(ValueError)               memory.full        the file would exceed its limit
    ├── MemoryDuplicate(ValueError)          memory.duplicate   the entry already exists
    ├── MemoryEntryMissing(LookupError)      memory.missing     no entry matches
    ├── MemoryEntryAmbiguous(LookupError)    memory.ambiguous   several entries match
    ├── MemoryBusy(TimeoutError)             memory.busy        another process is changing the file
    ├── MemoryUnreadable(ValueError)         memory.unreadable  the file cannot be changed without losing data
    ├── MemoryUnwritable(OSError)            memory.unwritable  the file cannot be written
    ├── KnowledgeMissing(LookupError)        knowledge.missing  the document does not exist
    └── KnowledgeUnreadable(OSError)         knowledge.unreadable  the document cannot be read

A change that fails leaves the file unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband import SidebandError
from sideband.suggestions import did_you_mean

_SHOWN = 5


class PromptError(SidebandError):
    """A call of one of this plugin's tools failed."""

    code = "prompt.failed"


class MemoryFull(PromptError, ValueError):
    """The file would exceed its limit."""

    code = "memory.full"

    def __init__(self, target: str, *, used: int, needed: int, limit: int) -> None:
        super().__init__(
            f"`{target}` would have {needed:,} characters, which exceeds the limit of {limit:,}; {used:,} are used",
            hint="remove or shorten less important entries, then try again; `list` shows them",
        )


class MemoryDuplicate(PromptError, ValueError):
    """The entry already exists."""

    code = "memory.duplicate"

    def __init__(self, target: str) -> None:
        super().__init__(f"`{target}` already contains this entry", hint="no change is needed")


class MemoryEntryMissing(PromptError, LookupError):
    """No entry contains the text."""

    code = "memory.missing"

    def __init__(self, target: str, entry: str) -> None:
        super().__init__(f"no entry of `{target}` contains {entry!r}", hint="`list` shows the entries")


class MemoryEntryAmbiguous(PromptError, LookupError):
    """Several entries contain the text."""

    code = "memory.ambiguous"

    def __init__(self, target: str, entry: str, found: Iterable[str]) -> None:
        matches = list(found)
        shown = "; ".join(matches[:_SHOWN])
        super().__init__(
            f"{len(matches)} entries of `{target}` contain {entry!r}: {shown}",
            hint="use a longer part of the entry",
        )


class MemoryBusy(PromptError, TimeoutError):
    """Another process is changing the file and did not finish in time."""

    code = "memory.busy"
    retryable = True

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"`{path.name}` was locked by another process for {seconds:g} s; nothing was written",
            hint="try again",
        )


class MemoryUnreadable(PromptError, ValueError):
    """The file cannot be changed without losing data. Nothing was written."""

    code = "memory.unreadable"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"`{path}` cannot be changed: {problem}", hint="ask the user to repair or remove the file")


class MemoryUnwritable(PromptError, OSError):
    """The file cannot be written. It is unchanged."""

    code = "memory.unwritable"

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"`{path}` cannot be written: {error.strerror or error}",
            hint="ask the user to check free space and permissions",
        )


class KnowledgeMissing(PromptError, LookupError):
    """The document does not exist."""

    code = "knowledge.missing"

    def __init__(self, path: str, known: Iterable[str]) -> None:
        super().__init__(
            f"unknown document {path!r}{did_you_mean(path, known)}",
            hint="`list` shows the documents, `query` searches them",
        )


class KnowledgeUnreadable(PromptError, OSError):
    """The document exists but cannot be read."""

    code = "knowledge.unreadable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the document `{path}` {problem}", hint="report the file to the user")
