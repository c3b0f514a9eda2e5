"""The store: one connection, used by one task at a time, each statement in a thread."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import anyio
from anyio import to_thread
from attrs import define, field
from sideband import StoreError
from sideband.store import Document, Record, Transaction

from ._connection import Connection, TransactionState
from ._errors import StoreBusy, is_busy, store_error
from ._schema import connect
from ._statements import (
    append_records,
    delete_document,
    delete_stream,
    get_document,
    list_keys,
    put_document,
    read_records,
)

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")
# How long a thread may wait inside SQLite, where it can't be cancelled. Longer waits are made of such short ones.
_BUSY_MS = 20
_PAUSE = 0.002


@define(eq=False)
class _SqliteTransaction:
    """What can be done inside ``SqliteStore.transaction``."""

    _store: SqliteStore
    _state: TransactionState

    async def get(self, key: str) -> Document | None:
        return await self._run(get_document, key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        return await self._run(put_document, key, value, version)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        return await self._run(delete_document, key, version)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        return await self._run(list_keys, prefix)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        return await self._run(append_records, stream, values)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        return await self._run(read_records, stream, start, limit)

    async def delete_stream(self, stream: str) -> bool:
        return await self._run(delete_stream, stream)

    async def _run(self, job: Callable[[sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        return await self._store.in_thread(self._store.connection.within, self._state, job, *arguments)


@define(eq=False)
class SqliteStore:
    """A ``sideband.store.Store`` in one file. ``open_sqlite`` opens it.

    Inside ``transaction()``, use the transaction it yields: the store itself waits until that has ended.
    """

    path: Path
    connection: Connection = field(repr=False)
    busy_timeout: float
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)

    async def get(self, key: str) -> Document | None:
        """The document under ``key``, or ``None``."""
        return await self._alone(self.connection.read, get_document, key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        """Write ``value`` and return its new version; ``version`` is the one it replaces (0: none)."""
        return await self._alone(self.connection.write, put_document, key, value, version)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Remove the document; whether there was one."""
        return await self._alone(self.connection.write, delete_document, key, version)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """The keys that begin with ``prefix``, sorted by code point."""
        return await self._alone(self.connection.read, list_keys, prefix)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        """Add to the end of a stream, all or nothing, and return the position of the first one added."""
        return await self._alone(self.connection.write, append_records, stream, values)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """The records of a stream from ``start``, in order, at most ``limit``."""
        return await self._alone(self.connection.read, read_records, stream, start, limit)

    async def delete_stream(self, stream: str) -> bool:
        """Remove a whole stream; whether there was one."""
        return await self._alone(self.connection.write, delete_stream, stream)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """All of the body, or, when it raises or is cancelled, nothing. Not nested."""
        state = TransactionState()
        async with self._exclusively():
            try:
                await self._once_free(self.connection.begin, state)
                yield _SqliteTransaction(self, state)
                await self.in_thread(self.connection.commit, state)
            finally:
                if not state.over:
                    with anyio.CancelScope(shield=True):
                        await self.in_thread(self.connection.end, state)

    async def in_thread(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a job of the connection in a thread, with SQLite's errors as ours."""
        try:
            return await to_thread.run_sync(job, *arguments)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    async def _alone(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        async with self._exclusively():
            return await self._once_free(job, *arguments)

    @asynccontextmanager
    async def _exclusively(self) -> AsyncIterator[None]:
        owner = self._turn.statistics().owner
        if owner is not None and owner.id == anyio.get_current_task().id:
            raise StoreError(
                "the store was used inside its own transaction",
                hint="use the transaction that `async with store.transaction()` yields; they are not nested",
            )
        async with self._turn:
            yield

    async def _once_free(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        return await _while_busy(self.path, self.busy_timeout, job, *arguments)


@asynccontextmanager
async def open_sqlite(folder: Path, *, busy_timeout: float = 10.0) -> AsyncIterator[SqliteStore]:
    """Open the store ``store.sqlite`` in a folder, made if missing, and close it in the end.

    Args:
        folder: where the file is, or is to be.
        busy_timeout: seconds to wait for another process that is writing.

    Raises:
        StoreForeign: the file is not ours, or newer than this version.
        StoreDamaged: the file is damaged.
        StoreUnwritable: it can't be opened or made.

    Example:
        >>> async with open_sqlite(Path("state")) as store:
        ...     await store.put("greeting", {"text": "hello"}, version=0)
    """
    path = folder / "store.sqlite"
    connection = Connection(await _while_busy(path, busy_timeout, connect, path, _BUSY_MS))
    try:
        yield SqliteStore(path, connection, busy_timeout)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(connection.close)


async def _while_busy(
    path: Path, patience: float, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> _Result:
    """Run a job in a thread, again for as long as another process is in its way."""
    deadline = anyio.current_time() + patience
    while True:
        try:
            return await to_thread.run_sync(job, *arguments)
        except sqlite3.Error as error:
            if not is_busy(error):
                raise store_error(path, error) from error
            if anyio.current_time() >= deadline:
                raise StoreBusy(path, patience) from error
        await anyio.sleep(_PAUSE)
