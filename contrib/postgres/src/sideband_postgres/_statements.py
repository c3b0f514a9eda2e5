"""The operations of a transaction as statements on a connection. Each that writes is one statement where it can be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from sideband import StoreConflict
from sideband.store import Document, Record

from ._connection import PostgresConnection
from ._errors import PostgresValueError

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
# An index entry of PostgreSQL has at most about 2,700 bytes.
_MAX_KEY_BYTES = 2_000
_Row = tuple[Any, ...]

_ANY = (
    "INSERT INTO documents AS old (key, version, value) VALUES (%(key)s, 1, %(value)s) "
    "ON CONFLICT (key) DO UPDATE SET version = old.version + 1, value = excluded.value RETURNING version"
)
_NEW = (
    "INSERT INTO documents (key, version, value) VALUES (%(key)s, 1, %(value)s) "
    "ON CONFLICT (key) DO NOTHING RETURNING version"
)
_NEXT = (
    "UPDATE documents SET version = version + 1, value = %(value)s "
    "WHERE key = %(key)s AND version = %(version)s RETURNING version"
)
_APPEND = (
    "WITH stream AS (INSERT INTO streams AS old (name, length) VALUES (%(name)s, %(count)s) "
    "ON CONFLICT (name) DO UPDATE SET length = old.length + excluded.length RETURNING length - %(count)s AS first), "
    "added AS (INSERT INTO records (stream, position, value) SELECT %(name)s, first + number - 1, value "
    "FROM stream, unnest(%(values)s::text[]) WITH ORDINALITY AS added (value, number)) SELECT first FROM stream"
)


async def get_document(connection: PostgresConnection, key: str, *, locked: bool = False) -> Document | None:
    """Return the document under ``key``, or ``None``.

    Args:
        connection: a connection.
        key: the key.
        locked: whether others may not change it until the transaction ends.
    """
    query: LiteralString = "SELECT value, version FROM documents WHERE key = %s"
    row = await _row(connection, query + " FOR UPDATE" if locked else query, [_text(key)])
    return None if row is None else Document(json.loads(row[0]), row[1])


async def put_document(connection: PostgresConnection, key: str, value: Mapping[str, Any], version: int | None) -> int:
    """Write a document and return its new version."""
    statement = _ANY if version is None else _NEXT if version else _NEW
    row = await _row(connection, statement, {"key": _text(key), "value": _json(key, value), "version": version})
    if row is None:
        raise await _conflict(connection, key, version)
    return int(row[0])


async def delete_document(connection: PostgresConnection, key: str, version: int | None) -> bool:
    """Delete a document, and return whether it existed."""
    statement: LiteralString = "DELETE FROM documents WHERE key = %(key)s"
    if version is not None:
        statement += " AND version = %(version)s"
    done = await connection.execute(statement, {"key": _text(key), "version": version})
    if not done.rowcount and version:
        raise await _conflict(connection, key, version)
    if not done.rowcount and version == 0 and await get_document(connection, key) is not None:
        raise await _conflict(connection, key, version)
    return bool(done.rowcount)


async def list_keys(connection: PostgresConnection, prefix: str) -> Sequence[str]:
    """Return the keys that begin with ``prefix``, sorted by code point."""
    pattern = re.sub(r"([\\%_])", r"\\\1", _text(prefix)) + "%"
    rows = await connection.execute("SELECT key FROM documents WHERE key LIKE %s ORDER BY key", [pattern])
    return tuple([row[0] async for row in rows])


async def append_records(connection: PostgresConnection, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
    """Append records to a stream, and return the position of the first one."""
    texts = [_json(stream, value) for value in values]
    name = _text(stream)
    if not texts:
        row = await _row(connection, "SELECT length FROM streams WHERE name = %s", [name])
        return 0 if row is None else int(row[0])
    row = await _row(connection, _APPEND, {"name": name, "count": len(texts), "values": texts})
    assert row is not None  # noqa: S101  the statement returns one row
    return int(row[0])


async def read_records(
    connection: PostgresConnection, stream: str, start: int, count: int | None, *, locked: bool = False
) -> Sequence[Record]:
    """Return at most ``count`` records of a stream, from ``start``.

    Args:
        connection: a connection.
        stream: the name of the stream.
        start: the first position.
        count: the maximum number of records.
        locked: whether others may not append to it until the transaction ends.
    """
    name = _text(stream)
    if locked:
        await connection.execute("SELECT FROM streams WHERE name = %s FOR UPDATE", [name])
    rows = await connection.execute(
        "SELECT position, value FROM records WHERE stream = %s AND position >= %s ORDER BY position LIMIT %s",
        [name, start, None if count is None else max(count, 0)],
    )
    return tuple([Record(position, json.loads(value)) async for position, value in rows])


async def delete_stream(connection: PostgresConnection, stream: str) -> bool:
    """Delete a stream, and return whether it existed. Needs a transaction."""
    name = _text(stream)
    # The row locks the stream. The second statement then sees what was appended before.
    done = await connection.execute("DELETE FROM streams WHERE name = %s", [name])
    if done.rowcount:
        await connection.execute("DELETE FROM records WHERE stream = %s", [name])
    return bool(done.rowcount)


async def _row(connection: PostgresConnection, query: LiteralString, arguments: Any) -> _Row | None:
    return await (await connection.execute(query, arguments)).fetchone()


async def _conflict(connection: PostgresConnection, key: str, version: int | None) -> StoreConflict:
    row = await _row(connection, "SELECT version FROM documents WHERE key = %s", [key])
    found = 0 if row is None else int(row[0])
    # It may have been written again since.
    return StoreConflict(key) if found == version else StoreConflict(key, expected=version, found=found)


def _json(key: str, value: Mapping[str, Any]) -> str:
    if not isinstance(value, Mapping):  # a list of pairs would become an object
        raise PostgresValueError(key, f"expected an object, got a {type(value).__name__}")
    try:
        return _encode(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise PostgresValueError(key, str(error)) from error


def _text(key: str) -> str:
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise PostgresValueError(key, "the key contains a lone surrogate") from error
    if "\x00" in key:
        raise PostgresValueError(key, "the key contains a null character")
    if size > _MAX_KEY_BYTES:
        raise PostgresValueError(key, f"the key has {size:,} bytes, more than {_MAX_KEY_BYTES:,}")
    return key
