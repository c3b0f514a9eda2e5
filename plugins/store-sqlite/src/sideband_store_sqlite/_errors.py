"""What can go wrong with the file, and how SQLite's own errors are told apart.

StoreError                                    store.failed     (of sideband)
├── StoreBusy(TimeoutError)                   store.busy
├── StoreDamaged                              store.damaged
├── StoreForeign                              store.foreign    another program's file, or a newer version's
├── StoreUnwritable(OSError)                  store.unwritable
└── ValueNotStorable(ValueError)              store.value
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sideband import StoreError

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "free some space on that disk, and try again",
    sqlite3.SQLITE_READONLY: "give your user the right to write there, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_CANTOPEN: "give your user the right to write there, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_PERM: "give your user the right to write there, or set SIDEBAND_HOME to another folder",
    sqlite3.SQLITE_IOERR: "the disk reports errors or is full; check it, or set SIDEBAND_HOME to another folder",
}


class StoreBusy(StoreError, TimeoutError):
    """Another process kept the file locked for longer than any transaction should take."""

    code = "store.busy"

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(
            f"the store {path} was locked by another process for more than {seconds:g} s",
            hint="end or resume the process that is in the middle of a transaction, and try again",
            retryable=True,
        )


class StoreDamaged(StoreError):
    """The file is not what was written to it."""

    code = "store.damaged"

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the store {path} is damaged: {problem}",
            hint="restore it from a backup, or move it aside to start with an empty one; "
            "`sqlite3 FILE .recover` saves what can be saved",
        )


class StoreForeign(StoreError):
    """The file belongs to another program, or to a newer version of this one. It was not touched."""

    code = "store.foreign"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"the store {path} can't be used: {problem}", hint=hint)


class StoreUnwritable(StoreError, OSError):
    """The file can't be opened or written. Nothing was half-written."""

    code = "store.unwritable"

    def __init__(self, path: Path, problem: str, *, hint: str) -> None:
        super().__init__(f"the store {path} can't be written: {problem}", hint=hint)


class ValueNotStorable(StoreError, ValueError):
    """A key or a value that is not JSON. Nothing was written."""

    code = "store.value"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"what was to be stored under {key!a} is not JSON: {problem}",
            hint="store objects of text, finite numbers, booleans, lists and objects; encode bytes as base64",
        )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way, for the moment."""
    return _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The store's error for one of SQLite."""
    primary = _primary(error)
    if primary in _DAMAGED:
        return StoreDamaged(path, str(error))
    if primary in _UNWRITABLE:
        return StoreUnwritable(path, str(error), hint=_UNWRITABLE[primary])
    return StoreError(f"the store {path} failed: {error}", hint="this is a defect of the store; please report it")


def _primary(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
