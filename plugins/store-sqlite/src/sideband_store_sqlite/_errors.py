"""The errors of the store, and their mapping from SQLite's errors.

StoreError                                    store.failed     (of sideband)
├── StoreBusy(TimeoutError)                   store.busy
├── StoreDamaged                              store.damaged
├── StoreForeign                              store.foreign    a file of another program or of a newer version
├── StoreUnwritable(OSError)                  store.unwritable
└── ValueNotStorable(ValueError)              store.value
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sideband import StoreError

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "free some disk space and retry",
    sqlite3.SQLITE_READONLY: "grant your user write access, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_CANTOPEN: "grant your user write access, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_PERM: "grant your user write access, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_IOERR: "check the disk for errors and free space, or set SIDEBAND_HOME to another folder",
}


class StoreBusy(StoreError, TimeoutError):
    """Another process held the lock of the file for too long."""

    code = "store.busy"

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"store {path} was locked by another process for more than {seconds:g} s",
            hint="stop or resume the process that holds an open transaction, then retry",
            retryable=True,
        )


class StoreDamaged(StoreError):
    """The file is damaged."""

    code = "store.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"store {path} is damaged: {problem}",
            hint="restore it from a backup, or move it away to start with an empty one; "
            "`sqlite3 FILE .recover` recovers readable data",
        )


class StoreForeign(StoreError):
    """The file belongs to another program, or to a newer version of this one. It was not changed."""

    code = "store.foreign"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot use store {path}: {problem}", hint=hint)


class StoreUnwritable(StoreError, OSError):
    """The file cannot be opened or written. Nothing was partially written."""

    code = "store.unwritable"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot write store {path}: {problem}", hint=hint)


class ValueNotStorable(StoreError, ValueError):
    """A key or a value is not valid JSON. Nothing was written."""

    code = "store.value"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"value for {key!a} is not valid JSON: {problem}",
            hint="use only objects of text, finite numbers, booleans, lists and objects; encode bytes as base64",
        )


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether the error is temporary, because another connection holds a lock."""
    return _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the store's error for an error of SQLite."""
    primary = _primary(error)
    if primary in _DAMAGED:
        return StoreDamaged(path, str(error))
    if primary in _UNWRITABLE:
        return StoreUnwritable(path, str(error), hint=_UNWRITABLE[primary])
    return StoreError(f"store {path} failed: {error}", hint="report this; it is a bug in the store")


def _primary(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
