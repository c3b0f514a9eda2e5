"""What the tools of this plugin fail with. The model reads these messages.

SidebandError
└── PromptError                              prompt.failed
    ├── MemoryFull(ValueError)               memory.full        the file would get longer than it may
    ├── MemoryDuplicate(ValueError)          memory.duplicate   the entry is there already
    ├── MemoryEntryMissing(LookupError)      memory.missing     no entry is like that
    ├── MemoryEntryAmbiguous(LookupError)    memory.ambiguous   several are
    ├── MemoryBusy(TimeoutError)             memory.busy        another process is changing it
    ├── MemoryUnreadable(ValueError)         memory.unreadable  the file is not one that can be changed safely
    ├── MemoryUnwritable(OSError)            memory.unwritable  the file system refuses
    ├── KnowledgeMissing(LookupError)        knowledge.missing  no document has that path
    └── KnowledgeUnreadable(OSError)         knowledge.unreadable  it is there and can't be read

A change that fails leaves the file as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband import SidebandError
from sideband.suggestions import did_you_mean

_SHOWN = 5


class PromptError(SidebandError):
    """A tool of this plugin could not do what it was asked."""

    code = "prompt.failed"


class MemoryFull(PromptError, ValueError):
    """The file would get longer than it may."""

    code = "memory.full"

    def __init__(self, target: str, *, used: int, needed: int, limit: int) -> None:
        super().__init__(
            f"`{target}` would have {needed:,} characters, and may have {limit:,}; {used:,} are used",
            hint="remove or shorten entries that matter less, then try again; `list` shows them",
        )


class MemoryDuplicate(PromptError, ValueError):
    """The entry is there already."""

    code = "memory.duplicate"

    def __init__(self, target: str) -> None:
        super().__init__(f"`{target}` has this entry already", hint="there is nothing to do")


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
            hint="give more of the text of the one that is meant",
        )


class MemoryBusy(PromptError, TimeoutError):
    """Another process is changing the file, and has not ended."""

    code = "memory.busy"
    retryable = True

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"`{path.name}` was being changed by another process for {seconds:g} s; nothing was written",
            hint="try again",
        )


class MemoryUnreadable(PromptError, ValueError):
    """The file is not one that can be changed without losing something. Nothing was written."""

    code = "memory.unreadable"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"`{path}` can't be changed: {problem}", hint="ask the user to repair or remove the file")


class MemoryUnwritable(PromptError, OSError):
    """The file system refuses. What was there before is still there."""

    code = "memory.unwritable"

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"`{path}` can't be written: {error.strerror or error}",
            hint="tell the user to look at free space and permissions",
        )


class KnowledgeMissing(PromptError, LookupError):
    """No document has that path."""

    code = "knowledge.missing"

    def __init__(self, path: str, known: Iterable[str]) -> None:
        super().__init__(
            f"there is no document {path!r}{did_you_mean(path, known)}",
            hint="`list` shows the documents, `query` finds them by words",
        )


class KnowledgeUnreadable(PromptError, OSError):
    """The document is there, and can't be read."""

    code = "knowledge.unreadable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the document `{path}` {problem}", hint="tell the user about the file")
