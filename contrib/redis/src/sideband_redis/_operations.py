"""Documents and streams: the operations of a store outside of transactions, on a connection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sideband import StoreConflict
from sideband.store import Document, Record

from ._calls import Caller
from ._connection import Argument, Command, RedisConnection
from ._errors import RedisDamaged, RedisValueError
from ._scripts import APPEND, DELETE, DELETE_STREAM, PUT, Script

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
# A server closes the connection when it gets more than 512 MB.
_MAX_BYTES = 100_000_000
# A version of more digits would be inexact in a script.
_MAX_DIGITS = 15


async def get_document(connection: RedisConnection, caller: Caller, key: bytes) -> Document | None:
    """Return the document under ``key``, or ``None``."""
    (found,) = await caller.read(connection, ("HGET", caller.names.documents, key))
    return document(key, found)


async def put_document(connection: RedisConnection, caller: Caller, key: bytes, text: str, version: int | None) -> int:
    """Write a document, and return its new version."""
    return await _change(connection, caller, PUT, key, version, text)


async def delete_document(connection: RedisConnection, caller: Caller, key: bytes, version: int | None) -> bool:
    """Delete a document, and return whether it existed."""
    return bool(await _change(connection, caller, DELETE, key, version))


async def list_keys(connection: RedisConnection, caller: Caller, prefix: bytes) -> Sequence[str]:
    """Return the keys that begin with ``prefix``, sorted by code point."""
    (found,) = await caller.read(connection, range_of(caller, prefix))
    return keys_in(found)


async def append_records(connection: RedisConnection, caller: Caller, stream: bytes, texts: Sequence[str]) -> int:
    """Append records to a stream, and return the position of the first one."""
    keys: list[Argument] = [*caller.names.of_documents, caller.names.stream(stream)]
    ((_, length),) = await caller.call(connection, APPEND, keys, ["", *texts])
    return int(length)


async def read_records(
    connection: RedisConnection, caller: Caller, stream: bytes, start: int, limit: int | None
) -> Sequence[Record]:
    """Return at most ``limit`` records of a stream, from ``start``."""
    (found,) = await caller.read(connection, slice_of(caller, stream, start, limit))
    return records(stream, found, max(start, 0))


async def delete_stream(connection: RedisConnection, caller: Caller, stream: bytes) -> bool:
    """Delete a stream, and return whether it existed."""
    keys: list[Argument] = [*caller.names.of_documents, caller.names.stream(stream)]
    ((_, found),) = await caller.call(connection, DELETE_STREAM, keys, [""])
    return bool(found)


def range_of(caller: Caller, prefix: bytes) -> Command:
    """Return the command that lists keys. No byte of UTF-8 is 255."""
    return ("ZRANGE", caller.names.index, b"[" + prefix, b"(" + prefix + b"\xff", "BYLEX")


def slice_of(caller: Caller, stream: bytes, start: int, limit: int | None) -> Command:
    """Return the command that reads a part of a stream."""
    first = max(start, 0)
    # The range includes its end; an end before its begin makes it empty.
    last = -1 if limit is None else first + max(limit, 0) - 1
    if limit is not None and last < first:
        first, last = 1, 0
    return ("LRANGE", caller.names.stream(stream), first, last)


def document(key: bytes, found: bytes | None) -> Document | None:
    """Return a document as it is stored: ``VERSION:VALUE``.

    Raises:
        RedisDamaged: if it is not stored like that.
    """
    if found is None:
        return None
    version, _, value = found.partition(b":")
    if not (version.isdigit() and len(version) <= _MAX_DIGITS):
        raise RedisDamaged(key.decode(), "a document has no version")
    return Document(_value(key, value), int(version))


def records(stream: bytes, texts: Sequence[str | bytes], first: int) -> Sequence[Record]:
    """Return records from their texts.

    Args:
        stream: the name of the stream.
        texts: the texts.
        first: the position of the first one.

    Raises:
        RedisDamaged: if one is not an object of JSON.
    """
    return tuple(Record(position, _value(stream, text)) for position, text in enumerate(texts, first))


def keys_in(found: Sequence[bytes]) -> Sequence[str]:
    """Return the keys that the index contains.

    Raises:
        RedisDamaged: if one is not a text.
    """
    try:
        return tuple(one.decode() for one in found)
    except UnicodeDecodeError as error:
        raise RedisDamaged(error.object.decode(errors="replace"), "a key is not in UTF-8") from error


def text_of(key: str, value: Mapping[str, Any]) -> str:
    """Return a value as it is stored.

    Raises:
        RedisValueError: if it is not an object of JSON.
    """
    if not isinstance(value, Mapping):  # a list of pairs would become an object
        raise RedisValueError(key, f"expected an object, got a {type(value).__name__}")
    try:
        text = _encode(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise RedisValueError(key, str(error)) from error
    if len(text) > _MAX_BYTES:
        raise RedisValueError(key, f"it has {len(text):,} bytes, more than {_MAX_BYTES:,}")
    return text


def key_of(key: str) -> bytes:
    """Return a key or the name of a stream as it is stored.

    Raises:
        RedisValueError: if it is not valid Unicode.
    """
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise RedisValueError(key, "the key contains a lone surrogate") from error


async def _change(
    connection: RedisConnection, caller: Caller, script: Script, key: bytes, version: int | None, *more: str
) -> int:
    expected = "" if version is None else str(version)
    keys = caller.names.of_documents
    ((code, found),) = await caller.call(connection, script, keys, ["", key, expected, *more])
    if code == b"damaged":
        raise RedisDamaged(key.decode(), "a document has no version")
    if code == b"conflict":
        raise StoreConflict(key.decode(), expected=version, found=found)
    return int(found)


def _value(key: bytes, text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RedisDamaged(key.decode(), f"invalid JSON: {error}") from error
    if not isinstance(value, dict):
        raise RedisDamaged(key.decode(), f"expected an object, got a {type(value).__name__}")
    return value
