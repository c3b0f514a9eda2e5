"""The tables, and the identification of the file format."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ._errors import StoreForeign, StoreUnwritable

# "SBST" as four bytes: SQLite's application id, which `file` shows
_APPLICATION = 0x53425354
_VERSION = 1
_TABLES = """
    CREATE TABLE documents (
        key TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE records (
        stream TEXT NOT NULL,
        position INTEGER NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (stream, position)
    ) WITHOUT ROWID;
"""
# A log that has become longer is cut when it begins again, but not to zero: a file that is overwritten syncs faster
# than one that grows.
_LOG_BYTES = 8 * 1024 * 1024
_HINT = "grant your user write access, or set SIDEBAND_HOME to another folder"


def connect(path: Path, busy_ms: int) -> tuple[sqlite3.Connection, int]:
    """Open the file, creating it with its tables if it is missing, and return a connection and a descriptor of its log.

    The connection may be used from any thread, but by one thread at a time.

    Args:
        path: the file.
        busy_ms: how many milliseconds opening waits for another process before it fails as busy. Later statements do
            not wait.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it readable by others; its -wal and -shm files inherit the permissions of this file
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnwritable(path, error.strerror or str(error), hint=_HINT) from error
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_ms / 1000)
    try:
        _check_format(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if _pragma(connection, "user_version") == 0:
            _create(connection)
        # See `_log.py`: commits do not sync the log, and checkpoints run only in threads.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        connection.execute("PRAGMA busy_timeout = 0")
        log = os.open(f"{path}-wal", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        connection.close()
        raise StoreUnwritable(path, error.strerror or str(error), hint=_HINT) from error
    except BaseException:
        connection.close()
        raise
    return connection, log


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    # In one transaction: another host may create the tables at this moment.
    connection.execute("BEGIN")
    try:
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        schema = _pragma(connection, "schema_version")
    finally:
        if connection.in_transaction:  # not after some errors
            connection.execute("ROLLBACK")
    if application == version == schema == 0:
        return
    if application != _APPLICATION:
        raise StoreForeign(path, "it belongs to another program", hint="move it to another folder")
    if version > _VERSION:
        raise StoreForeign(
            path,
            f"it has format {version}, but this version of sideband-store-sqlite supports format {_VERSION}",
            hint="upgrade sideband-store-sqlite, or set SIDEBAND_HOME to another folder",
        )


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another host may have created the tables since
        if _pragma(connection, "user_version") == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
