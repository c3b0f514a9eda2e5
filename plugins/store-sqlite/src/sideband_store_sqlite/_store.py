"""The store: one connection, used by one task at a time, with each statement in a thread."""

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
# how long a thread may wait inside SQLite, where it cannot be cancelled; longer waits are repeated short ones
_BUSY_MS = 20
_PAUSE = 0.002


@define(eq=False)
class _SqliteTransaction:
    """The operations available inside ``SqliteStore.transaction``."""

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
    """A ``sideband.store.Store`` in one file. Use ``open_sqlite`` to open it.

    Inside ``transaction()``, use the yielded transaction: the store itself waits until the transaction has ended.
    """

    path: Path
    connection: Connection = field(repr=False)
    busy_timeout: float
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self._run_exclusively(self.connection.read, get_document, key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        """Write ``value`` and return its new version; ``version`` is the expected current one (0 if none exists)."""
        return await self._run_exclusively(self.connection.write, put_document, key, value, version)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete a document, and return whether it existed."""
        return await self._run_exclusively(self.connection.write, delete_document, key, version)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted by code point."""
        return await self._run_exclusively(self.connection.read, list_keys, prefix)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        """Append records to a stream atomically, and return the position of the first one."""
        return await self._run_exclusively(self.connection.write, append_records, stream, values)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream, from ``start``, in order."""
        return await self._run_exclusively(self.connection.read, read_records, stream, start, limit)

    async def delete_stream(self, stream: str) -> bool:
        """Delete a stream, and return whether it existed."""
        return await self._run_exclusively(self.connection.write, delete_stream, stream)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Run the body as one transaction, which is rolled back if it raises or is cancelled. Cannot be nested."""
        state = TransactionState()
        async with self._exclusive():
            try:
                await self._retry(self.connection.begin, state)
                yield _SqliteTransaction(self, state)
                await self.in_thread(self.connection.commit, state)
            finally:
                if not state.ended:
                    with anyio.CancelScope(shield=True):
                        await self.in_thread(self.connection.end, state)

    async def in_thread(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a job of the connection in a thread, and map SQLite's errors."""
        try:
            return await to_thread.run_sync(job, *arguments)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    async def _run_exclusively(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        async with self._exclusive():
            return await self._retry(job, *arguments)

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        owner = self._lock.statistics().owner
        if owner is not None and owner.id == anyio.get_current_task().id:
            raise StoreError(
                "the store was used inside its own transaction",
                hint="use the transaction that `async with store.transaction()` yields; transactions cannot be nested",
            )
        async with self._lock:
            yield

    async def _retry(self, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        return await _retry_while_busy(self.path, self.busy_timeout, job, *arguments)


@asynccontextmanager
async def open_sqlite(folder: Path, *, busy_timeout: float = 10.0) -> AsyncIterator[SqliteStore]:
    """Open the store ``store.sqlite`` in a folder, creating it if it is missing, and close it on exit.

    Args:
        folder: the folder of the file.
        busy_timeout: how many seconds to wait for another process that is writing.

    Raises:
        StoreForeign: if the file belongs to another program or to a newer version.
        StoreDamaged: if the file is damaged.
        StoreUnwritable: if it cannot be opened or created.

    Example:
        >>> async with open_sqlite(Path("state")) as store:
        ...     await store.put("greeting", {"text": "hello"}, version=0)
    """
    path = folder / "store.sqlite"
    connection = Connection(await _retry_while_busy(path, busy_timeout, connect, path, _BUSY_MS))
    try:
        yield SqliteStore(path, connection, busy_timeout)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(connection.close)


async def _retry_while_busy(
    path: Path, seconds: float, job: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> _Result:
    """Run a job in a thread, retrying while another process holds the lock."""
    deadline = anyio.current_time() + seconds
    while True:
        try:
            return await to_thread.run_sync(job, *arguments)
        except sqlite3.Error as error:
            if not is_busy(error):
                raise store_error(path, error) from error
            if anyio.current_time() >= deadline:
                raise StoreBusy(path, seconds) from error
        await anyio.sleep(_PAUSE)
