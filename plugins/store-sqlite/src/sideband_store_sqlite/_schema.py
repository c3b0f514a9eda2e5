"""The tables, and how a file is recognised as ours."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ._errors import StoreForeign, StoreUnwritable

# "SBST" as four bytes: what `file` and SQLite call the application id.
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
_CLAIM = "give your user the right to write there, or set SIDEBAND_HOME to another folder"


def connect(path: Path, busy_ms: int) -> sqlite3.Connection:
    """Open the file, made with its tables if missing. May be used from any thread, by one at a time.

    Args:
        path: the file.
        busy_ms: milliseconds that a statement waits for another process before it fails as busy.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it readable by others; its -wal and -shm files take the rights of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnwritable(path, error.strerror or str(error), hint=_CLAIM) from error
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_ms / 1000)
    try:
        _recognise(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if _number(connection, "user_version") == 0:
            _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    application = _number(connection, "application_id")
    version = _number(connection, "user_version")
    if application == 0 and version == 0 and _number(connection, "schema_version") == 0:
        return
    if application != _APPLICATION:
        raise StoreForeign(path, "it is a database of another program", hint="move it to another folder")
    if version > _VERSION:
        raise StoreForeign(
            path,
            f"it has format {version}, and this version of sideband-store-sqlite knows format {_VERSION}",
            hint="upgrade sideband-store-sqlite, or set SIDEBAND_HOME to another folder",
        )


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another host may have made them since.
        if _number(connection, "user_version") == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
