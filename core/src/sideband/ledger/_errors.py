"""What can go wrong with the record of effects.

LedgerError(SidebandError, OSError)           ledger.failed
├── LedgerUnwritable                          ledger.unwritable   full disk, permission, read-only, I/O error
├── LedgerBusy(TimeoutError)                  ledger.busy         another host holds the lock for too long
├── LedgerDamaged                             ledger.damaged      nothing can follow what stands at the end
├── LedgerIndexFailed                         ledger.index        the index can't be built
└── LedgerClosed                              ledger.closed
"""

from __future__ import annotations

import errno
from pathlib import Path

from ..errors import SidebandError

_HINTS = {
    errno.ENOSPC: "free some space on that disk; the next effect is recorded again as soon as there is room",
    errno.EDQUOT: "free some space within the quota; the next effect is recorded again as soon as there is room",
    errno.EFBIG: "raise the limit of the file size (`ulimit -f`), or rotate at a smaller size",
    errno.EROFS: "the disk is read-only; set SIDEBAND_HOME to a folder that can be written",
    errno.EACCES: "give your user the right to write there, or set SIDEBAND_HOME to another folder",
    errno.EPERM: "give your user the right to write there, or set SIDEBAND_HOME to another folder",
    errno.EIO: "the disk reports errors; check it, or set SIDEBAND_HOME to a folder on another one",
}


class LedgerError(SidebandError, OSError):
    """The record of effects could not be written or read."""

    code = "ledger.failed"


class LedgerUnwritable(LedgerError):
    """A line could not be written, and no part of it was left behind. The effect must not happen.

    Args:
        path: the file or folder that it was about.
        cause: what the operating system said.
    """

    code = "ledger.unwritable"

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(
            f"the ledger {path} can't be written: {cause.strerror or cause}",
            hint=_HINTS.get(cause.errno or 0, "no effect can happen until it can be written; `sideband doctor` looks"),
            retryable=cause.errno in {errno.ENOSPC, errno.EDQUOT},
        )
        self.path = path
        self.errno = cause.errno


class LedgerBusy(LedgerError, TimeoutError):
    """Another process kept the ledger locked for longer than any write takes."""

    code = "ledger.busy"

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"another process kept the ledger {path} locked for more than {seconds:g} s",
            hint="a host that is stopped (Ctrl-Z, a debugger) in the middle of a write does that; resume or end it",
            retryable=True,
        )
        self.path = path


class LedgerDamaged(LedgerError):
    """The last line is not an entry, so nothing can follow it."""

    code = "ledger.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the ledger can't be continued after {path}: {problem}",
            hint="`sideband audit verify` shows all that is wrong; to start a new ledger, move the folder aside",
        )
        self.path = path


class LedgerIndexFailed(LedgerError):
    """The index of the ledger could not be built or read; the ledger itself is not affected."""

    code = "ledger.index"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the index {path} can't be used: {problem}",
            hint="make room or give the right to write there; the index holds nothing of its own and may be deleted",
        )
        self.path = path


class LedgerClosed(LedgerError):
    """The ledger was used before it was entered or after it was left."""

    code = "ledger.closed"

    def __init__(self) -> None:
        super().__init__("the ledger is not open", hint="use it inside `async with Ledger(...)`")
