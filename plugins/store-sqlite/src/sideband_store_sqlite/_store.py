"""The store: one connection, used by one task at a time.

A short operation takes 5 to 30 µs, a thread 100 to 250 µs. Therefore operations run on the event loop, and only those
that would take longer than a thread run in one: large values, long streams, syncs and checkpoints.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled
from attrs import define, field
from sideband import StoreError
from sideband.store import Document, Record, Transaction

from ._connection import Connection, TransactionState
from ._errors import StoreBusy, StoreUnwritable, is_busy, store_error
from ._log import Log
from ._schema import connect
from ._statements import (
    NotOnLoop,
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
# How many characters an operation may handle on the event loop: encoding or decoding them takes 0.15 to 0.3 ms.
_LIMIT = 32 * 1024
# Operations on the event loop do not wait, so that after this many of them others get their turn.
_OPERATIONS_PER_TURN = 32
# How long opening may wait inside SQLite, where it cannot be cancelled. All longer waits are repeated attempts.
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

    async def _run(
        self, job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        await self._store.take_turn()
        return await self._store.attempt(self._store.connection.within, self._state, job, *arguments)


@define(eq=False)
class SqliteStore:
    """A ``sideband.store.Store`` in one file. Use ``open_sqlite`` to open it.

    Inside ``transaction()``, use the yielded transaction: the store itself waits until the transaction has ended.

    Attributes:
        path: the file.
        connection: the connection that all reads and writes use.
        busy_timeout: the time to wait for another process that writes, in seconds.
    """

    path: Path
    connection: Connection = field(repr=False)
    busy_timeout: float
    _log: Log = field(repr=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)
    _operations: int = field(default=0, init=False, repr=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self._read(get_document, key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:
        """Write ``value`` and return its new version; ``version`` is the expected current one (0 if none exists)."""
        return await self._write(durable, put_document, key, value, version)

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:
        """Delete a document, and return whether it existed."""
        return await self._write(durable, delete_document, key, version)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted by code point."""
        return await self._read(list_keys, prefix)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:
        """Append records to a stream atomically, and return the position of the first one."""
        return await self._write(durable, append_records, stream, values)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream, from ``start``, in order."""
        return await self._read(read_records, stream, start, limit)

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:
        """Delete a stream, and return whether it existed."""
        return await self._write(durable, delete_stream, stream)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """Run the body as one transaction, which is rolled back if it raises or is cancelled. Cannot be nested."""
        state = TransactionState()
        await self.take_turn()
        async with self._exclusive():
            try:
                await self._retry(self.connection.begin, state)
                yield _SqliteTransaction(self, state)
                await self.take_turn()
                await self.attempt(self.connection.commit, state)
            finally:
                if not state.ended:
                    with anyio.CancelScope(shield=True):
                        await self.attempt(self.connection.end, state)
        await self._after_commit(durable)

    async def sync(self) -> None:
        """Return when everything that was written before, by any host, is on disk."""
        await checkpoint_if_cancelled()
        await self._log.sync()

    def unsynced(self) -> Callable[[], None] | None:
        """Return a job that does the work of ``sync`` in a thread, or ``None`` if there is nothing to sync."""
        return self._log.unsynced()

    async def take_turn(self) -> None:
        """Raise if the task was cancelled, and sometimes let other tasks run, since operations may not wait."""
        self._operations += 1
        if self._operations % _OPERATIONS_PER_TURN:
            await checkpoint_if_cancelled()
        else:
            await checkpoint()

    async def attempt(self, job: Callable[[int | None, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a job of the connection on the event loop or, if it is not short, in a thread."""
        try:
            try:
                return job(_LIMIT, *arguments)
            except NotOnLoop:
                return await to_thread.run_sync(job, None, *arguments)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    async def _read(
        self, job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        await self.take_turn()
        # The lock may be held by a task that waits for another process to end its transaction: reading need not wait.
        return await self._run(True, self.connection.read, job, *arguments)

    async def _run(
        self,
        at_once: bool,
        run: Callable[
            [int | None, Callable[[int | None, sqlite3.Connection, *_Arguments], _Result], *_Arguments], _Result
        ],
        job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        # The lock is needed only by operations that wait: others are over before another task runs.
        if at_once:
            try:
                return run(_LIMIT, job, *arguments)
            except NotOnLoop:
                pass
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise store_error(self.path, error) from error
        async with self._exclusive():
            return await self._retry(run, job, *arguments)

    async def _write(
        self,
        durable: bool,
        job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        await self.take_turn()
        result = await self._run(not self._lock.locked(), self.connection.write, job, *arguments)
        await self._after_commit(durable)
        return result

    async def _after_commit(self, durable: bool) -> None:
        due = self._log.checkpoint_due
        try:
            if durable or due:
                # before a checkpoint too, which then has less to do while it holds the connection
                await self._log.sync()
        except StoreUnwritable:
            if durable:
                raise
            return
        if due and not self._lock.locked():
            async with self._exclusive():
                await to_thread.run_sync(self._log.checkpoint)

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        try:
            self._lock.acquire_nowait()
        except anyio.WouldBlock:
            await self._lock.acquire()
        except RuntimeError:
            raise StoreError(
                "the store was used inside its own transaction",
                hint="use the transaction that `async with store.transaction()` yields; transactions cannot be nested",
            ) from None
        try:
            yield
        finally:
            self._lock.release()

    async def _retry(self, job: Callable[[int | None, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a job of the connection on the event loop or in a thread, retrying while another process is writing."""
        deadline = anyio.current_time() + self.busy_timeout
        while True:
            try:
                try:
                    return job(_LIMIT, *arguments)
                except NotOnLoop:
                    return await to_thread.run_sync(job, None, *arguments)
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise store_error(self.path, error) from error
                if anyio.current_time() >= deadline:
                    raise StoreBusy(self.path, self.busy_timeout) from error
            await anyio.sleep(_PAUSE)


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
    database, log = await _connect(path, busy_timeout)
    connection = Connection(database)
    opened = Log(path, log, connection)
    try:
        yield SqliteStore(path, connection, busy_timeout, opened)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(opened.close)


async def _connect(path: Path, seconds: float) -> tuple[sqlite3.Connection, int]:
    """Open the file in a thread, retrying while another process holds the lock."""
    deadline = anyio.current_time() + seconds
    while True:
        try:
            return await to_thread.run_sync(connect, path, _BUSY_MS)
        except sqlite3.Error as error:
            if not is_busy(error):
                raise store_error(path, error) from error
            if anyio.current_time() >= deadline:
                raise StoreBusy(path, seconds) from error
        await anyio.sleep(_PAUSE)
