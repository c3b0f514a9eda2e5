"""The operations of a transaction as statements on a connection: synchronous, and committed by the caller.

Each takes as ``limit`` the number of characters that it may handle, ``None`` for any number. It raises ``NotOnLoop``
before it has changed anything if there are more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from sideband import StoreConflict
from sideband.store import Document, Record

from ._errors import ValueNotStorable

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
# how many characters take about as long as reading or writing a row, and as a member of an object or a list
_ROW = 128
_MEMBER = 16
_LAST_CHARACTER = "\U0010ffff"


class NotOnLoop(Exception):
    """The operation would hold the event loop for too long, or would wait for a thread: repeat it in a thread."""


class _Unreadable(sqlite3.DatabaseError):
    """A stored value is not valid JSON."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def get_document(limit: int | None, connection: sqlite3.Connection, key: str) -> Document | None:
    """Return the document under ``key``, or ``None``."""
    row = connection.execute("SELECT value, version FROM documents WHERE key = ?", (_text(key),)).fetchone()
    if row is None:
        return None
    if limit is not None and len(row[0]) > limit:
        raise NotOnLoop
    return Document(_value(key, row[0]), row[1])


def put_document(
    limit: int | None, connection: sqlite3.Connection, key: str, value: Mapping[str, Any], version: int | None
) -> int:
    """Write a document and return its new version."""
    _check_size(limit, [value])
    text = _json(key, value)
    found = _check_version(connection, key, version)
    connection.execute(
        "INSERT INTO documents (key, version, value) VALUES (?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value",
        (key, found + 1, text),
    )
    return found + 1


def delete_document(_limit: int | None, connection: sqlite3.Connection, key: str, version: int | None) -> bool:
    """Delete a document, and return whether it existed."""
    _check_version(connection, key, version)
    return connection.execute("DELETE FROM documents WHERE key = ?", (key,)).rowcount > 0


def list_keys(limit: int | None, connection: sqlite3.Connection, prefix: str) -> Sequence[str]:
    """Return the keys that begin with ``prefix``, sorted."""
    after = _upper_bound(_text(prefix))
    most = -1 if limit is None else limit // _ROW + 1
    query = "SELECT key FROM documents WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
    if after is None:
        rows = connection.execute(query.replace(" AND key < ?", ""), (prefix, most)).fetchall()
    else:
        rows = connection.execute(query, (prefix, after, most)).fetchall()
    if len(rows) == most:
        raise NotOnLoop
    return tuple(row[0] for row in rows)


def append_records(
    limit: int | None, connection: sqlite3.Connection, stream: str, values: Sequence[Mapping[str, Any]]
) -> int:
    """Append records to a stream, and return the position of the first one."""
    _check_size(limit, values)
    texts = [_json(stream, value) for value in values]
    query = "SELECT COALESCE(MAX(position) + 1, 0) FROM records WHERE stream = ?"
    first = int(connection.execute(query, (_text(stream),)).fetchone()[0])
    connection.executemany(
        "INSERT INTO records (stream, position, value) VALUES (?, ?, ?)",
        [(stream, first + offset, text) for offset, text in enumerate(texts)],
    )
    return first


def read_records(
    limit: int | None, connection: sqlite3.Connection, stream: str, start: int, count: int | None
) -> Sequence[Record]:
    """Return at most ``count`` records of a stream, from ``start``."""
    rows = connection.execute(
        "SELECT position, value FROM records WHERE stream = ? AND position >= ? ORDER BY position LIMIT ?",
        (_text(stream), start, -1 if count is None else max(count, 0)),
    )
    found = rows.fetchall() if limit is None else _fetch(rows, limit)
    return tuple(Record(position, _value(stream, value)) for position, value in found)


def delete_stream(limit: int | None, connection: sqlite3.Connection, stream: str) -> bool:
    """Delete a stream, and return whether it existed. Its size is not known in advance."""
    if limit is not None:
        raise NotOnLoop
    return connection.execute("DELETE FROM records WHERE stream = ?", (_text(stream),)).rowcount > 0


def _check_version(connection: sqlite3.Connection, key: str, version: int | None) -> int:
    """Return the version of a document (0 if it does not exist), after checking it against ``version`` if given."""
    row = connection.execute("SELECT version FROM documents WHERE key = ?", (_text(key),)).fetchone()
    found = 0 if row is None else int(row[0])
    if version is not None and version != found:
        raise StoreConflict(key, expected=version, found=found)
    return found


def _fetch(rows: sqlite3.Cursor, limit: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for row in rows:
        limit -= len(row[1]) + _ROW
        if limit < 0:
            raise NotOnLoop
        found.append(row)
    return found


def _check_size(limit: int | None, values: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``NotOnLoop`` if the JSON texts of objects are longer than the limit, estimated without encoding them."""
    if limit is None:
        return
    limit -= _ROW * (len(values) - 1)
    # encoding rejects an object that is not a mapping
    waiting: list[object] = [dict(value) if isinstance(value, Mapping) else None for value in values]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            limit -= len(part)
        elif isinstance(part, dict):
            limit -= _MEMBER * len(part)
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            limit -= _MEMBER * len(part)
            waiting.extend(part)
        if limit < 0:
            raise NotOnLoop


def _json(key: str, value: Mapping[str, Any]) -> str:
    if not isinstance(value, Mapping):  # a list of pairs would become an object
        raise ValueNotStorable(key, f"expected an object, got a {type(value).__name__}")
    try:
        return _encode(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueNotStorable(key, str(error)) from error


def _value(key: str, text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise _Unreadable(f"value of {key!a} is not valid JSON") from error
    return value


def _text(key: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise ValueNotStorable(key, "the key contains a lone surrogate") from error
    return key


def _upper_bound(prefix: str) -> str | None:
    """Return the smallest text greater than all texts with this prefix, or ``None`` if there is no such text."""
    rest = prefix.rstrip(_LAST_CHARACTER)
    if not rest:
        return None
    following = ord(rest[-1]) + 1
    # skip surrogates, which are not characters
    return rest[:-1] + chr(0xE000 if following == 0xD800 else following)
