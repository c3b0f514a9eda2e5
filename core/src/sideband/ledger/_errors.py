"""The errors of the ledger.

LedgerError(SidebandError, OSError)           ledger.failed
├── LedgerUnwritable                          ledger.unwritable   full disk, permission, read-only, I/O error
├── LedgerBusy(TimeoutError)                  ledger.busy         another host holds the lock for too long
├── LedgerDamaged                             ledger.damaged      the last line is invalid
├── LedgerIndexFailed                         ledger.index        the index cannot be built
└── LedgerClosed                              ledger.closed
"""

from __future__ import annotations

import errno
from pathlib import Path

from ..errors import SidebandError

_HINTS = {
    errno.ENOSPC: "free some disk space; effects are possible again as soon as there is space",
    errno.EDQUOT: "free some space within the quota; effects are possible again as soon as there is space",
    errno.EFBIG: "raise the file size limit (`ulimit -f`), or rotate at a smaller size",
    errno.EROFS: "set SIDEBAND_HOME to a writable folder; this file system is read-only",
    errno.EACCES: "grant your user write permission, or set SIDEBAND_HOME to another folder",
    errno.EPERM: "grant your user write permission, or set SIDEBAND_HOME to another folder",
    errno.EIO: "check the disk, which reports I/O errors, or set SIDEBAND_HOME to a folder on another disk",
}


class LedgerError(SidebandError, OSError):
    """The ledger could not be written or read."""

    code = "ledger.failed"


class LedgerUnwritable(LedgerError):
    """A line could not be written, or not be synced to disk. The effect must not happen.

    A line that could not be written was not written in part either. After a failed sync, all later ones of the host
    fail.

    Args:
        path: the file or folder that could not be written.
        cause: the error of the operating system.
        synced: ``False`` if a sync has failed.
    """

    code = "ledger.unwritable"

    def __init__(self, path: Path, cause: OSError, *, synced: bool = True) -> None:
        hint = _HINTS.get(cause.errno or 0, "run `sideband doctor`; effects are impossible until it is writable")
        super().__init__(
            f"cannot {'write' if synced else 'sync'} ledger {path}: {cause.strerror or cause}",
            hint=hint if synced else "check the disk for errors and free space, then restart",
            retryable=synced and cause.errno in {errno.ENOSPC, errno.EDQUOT},
        )
        self.path = path
        self.errno = cause.errno


class LedgerBusy(LedgerError, TimeoutError):
    """Another process held the lock of the ledger for longer than the lock timeout."""

    code = "ledger.busy"

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"ledger {path} was locked by another process for more than {seconds:g} s",
            hint="resume or end any host that is stopped (Ctrl-Z, a debugger) during a write",
            retryable=True,
        )
        self.path = path


class LedgerDamaged(LedgerError):
    """The last line is not a valid entry, so nothing can be appended."""

    code = "ledger.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"cannot append to ledger segment {path}: {problem}",
            hint="run `sideband audit verify` to see all problems; move the folder away to start a new ledger",
        )
        self.path = path


class LedgerIndexFailed(LedgerError):
    """The index of the ledger could not be built or read. The ledger itself is not affected."""

    code = "ledger.index"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"cannot use ledger index {path}: {problem}",
            hint="check free space and permissions; the index can be deleted, and is rebuilt from the ledger",
        )
        self.path = path


class LedgerClosed(LedgerError):
    """The ledger was used outside its ``async with`` block."""

    code = "ledger.closed"

    def __init__(self) -> None:
        super().__init__("the ledger is not open", hint="use it inside `async with Ledger(...)`")
