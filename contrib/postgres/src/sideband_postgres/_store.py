"""The store: each operation is a transaction on a connection of the pool, and is on disk when it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import psycopg
from attrs import define, field
from sideband import StoreError
from sideband.store import Document, Record, Transaction

from ._connection import PostgresConnection, connect
from ._errors import PostgresBusy, PostgresCutOff, PostgresUnreachable, store_error
from ._holders import Holder, enter
from ._locks import NumberedLocks
from ._models import Config
from ._pool import Pool, patiently
from ._schema import migrate, namespace_of, prepare
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
_Job = Callable[[PostgresConnection], Awaitable[_Result]]
_CLOSE_SECONDS = 5.0
_RELEASE_SECONDS, _RELEASE_PAUSE = 1.0, 0.5
_FIRST_PAUSE, _MAX_PAUSE = 0.02, 0.5


@define(eq=False)
class _PostgresTransaction:
    """The operations available inside ``PostgresStore.transaction``. What it reads, others cannot change meanwhile."""

    _connection: PostgresConnection
    _seconds: float
    _ended: bool = False

    async def get(self, key: str) -> Document | None:
        return await self._run(partial(get_document, key=key, locked=True))

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        return await self._run(partial(put_document, key=key, value=value, version=version))

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        return await self._run(partial(delete_document, key=key, version=version))

    async def keys(self, prefix: str = "") -> Sequence[str]:
        return await self._run(partial(list_keys, prefix=prefix))

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        return await self._run(partial(append_records, stream=stream, values=values))

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        return await self._run(partial(read_records, stream=stream, start=start, count=limit, locked=True))

    async def delete_stream(self, stream: str) -> bool:
        return await self._run(partial(delete_stream, stream=stream))

    def end(self) -> None:
        self._ended = True

    async def _run(self, job: _Job[_Result]) -> _Result:
        if self._ended:
            raise StoreError("the transaction has ended", hint="use it inside its `async with` block only")
        async with _within(self._seconds):
            return await job(self._connection)


@define(eq=False)
class PostgresStore:
    """A ``sideband.store.SharedStore`` on PostgreSQL. Use ``open_postgres`` to open it.

    All writes are on disk when they return, also those with ``durable=False``: a host lives on when the server
    crashes, and what it has written must not be lost then.

    Attributes:
        config: its configuration.
    """

    config: Config
    _pool: Pool = field(repr=False)
    _locks: NumberedLocks = field(repr=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self._read(partial(get_document, key=key))

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:  # noqa: ARG002  always
        """Write ``value`` and return its new version; ``version`` is the expected current one (0 if none exists)."""
        return await self._write(partial(put_document, key=key, value=value, version=version))

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:  # noqa: ARG002  always
        """Delete a document, and return whether it existed."""
        return await self._write(partial(delete_document, key=key, version=version))

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted by code point."""
        return await self._read(partial(list_keys, prefix=prefix))

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:  # noqa: ARG002  always
        """Append records to a stream atomically, and return the position of the first one."""
        return await self._write(partial(append_records, stream=stream, values=values))

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream, from ``start``, in order."""
        return await self._read(partial(read_records, stream=stream, start=start, count=limit))

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:  # noqa: ARG002  always
        """Delete a stream, and return whether it existed."""
        async with self.transaction() as transaction:
            return await transaction.delete_stream(stream)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:  # noqa: ARG002  always
        """Run the body as one transaction, which is rolled back if it raises or is cancelled. Cannot be nested."""
        async with self._pool.connection() as connection:
            transaction = _PostgresTransaction(connection, self._seconds)
            try:
                async with _within(self._seconds):
                    await connection.execute("BEGIN")
                try:
                    yield transaction
                finally:
                    transaction.end()
                async with _within(self._seconds):
                    await connection.execute("COMMIT")
            except BaseException:
                # The end of the connection would roll it back too, but the next transaction needs one.
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(psycopg.Error):
                    await connection.execute("ROLLBACK")
                raise

    async def sync(self) -> None:
        """Do nothing: all writes are on disk when they return."""
        await anyio.lowlevel.checkpoint()

    def unsynced(self) -> Callable[[], None] | None:
        """Return ``None``: all writes are on disk when they return."""
        return None

    async def try_lock(self, name: str) -> bool:
        """Take a lock without waiting for its holder, and return whether it was free.

        If the holder has no connection to the server, it keeps the lock for ``grace_seconds``, and loses all its locks
        after that.
        """
        grace, attempt = self.config.grace_seconds, self._locks.begin()
        take = partial(self._locks.take, name=name, attempt=attempt, grace=grace)
        try:
            return await self._write(take, self._seconds + grace)
        except BaseException:
            self._locks.give_up(name, attempt)  # it may have been taken
            with anyio.move_on_after(_RELEASE_SECONDS, shield=True), suppress(StoreError):
                await self._write(self._locks.release_given_up)
            raise

    async def unlock(self, name: str) -> None:
        """Release a lock that this open store holds. If that fails, it is released later."""
        if (attempt := self._locks.held(name)) is None:
            return
        try:
            await self._write(partial(self._locks.release, name=name, attempt=attempt))
        except BaseException:
            self._locks.give_up(name, attempt)
            raise

    async def release_given_up(self) -> None:
        """Release locks whose attempts or releases ended without an answer. Runs until it is cancelled."""
        while True:
            await self._locks.wait()
            with suppress(StoreError):
                await self._write(self._locks.release_given_up)
            await anyio.sleep(_RELEASE_PAUSE)

    @property
    def _seconds(self) -> float:
        return _seconds(self.config)

    async def _write(self, job: _Job[_Result], seconds: float | None = None) -> _Result:
        async with self._pool.connection() as connection, _within(seconds or self._seconds):
            return await job(connection)

    async def _read(self, job: _Job[_Result]) -> _Result:
        async with self._pool.connection() as connection:
            # If the connection breaks meanwhile, the next one waits until the server can be reached again.
            with suppress(PostgresUnreachable):
                async with _within(self._seconds):
                    return await job(connection)
        return await self._write(job)


@asynccontextmanager
async def open_postgres(config: Config, folder: Path | None = None) -> AsyncIterator[PostgresStore]:  # noqa: ARG001  a store gets it
    """Connect to the database, create or migrate the tables, and yield the open store.

    Args:
        config: the database, and limits.
        folder: not used; the store has no files.

    Raises:
        StoreError: if the server cannot be reached, or the tables cannot be used.

    Example:
        >>> async with open_postgres(Config(address="postgresql://sideband@db.example/sideband")) as store:
        ...     await store.put("session/1", {"title": "first"}, version=0)
    """
    async with AsyncExitStack() as stack:
        keeper = await patiently(partial(_connect, config), config.wait_seconds)
        stack.callback(keeper.discard)
        try:
            await migrate(keeper, config.schema_name)
            holder = await enter(keeper, await namespace_of(keeper, config.schema_name))
            await holder.attach(keeper)
        except psycopg.Error as error:
            raise store_error(error) from error
        pool = Pool(partial(_connect, config, holder), config.max_connections, config.wait_seconds)
        stack.callback(pool.close)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_keep_alive, keeper, partial(_connect, config, holder))
                store = PostgresStore(config, pool, NumberedLocks(holder, _seconds(config)))
                tasks.start_soon(store.release_given_up)
                try:
                    yield store
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(StoreError, psycopg.Error):
                        async with pool.connection() as connection:
                            await holder.leave(connection)
        except BaseExceptionGroup as group:  # its only member comes from the block
            raise group.exceptions[0] from group.exceptions[0].__cause__


def _seconds(config: Config) -> float:
    """Return the time limit of a statement, for a server or a network that does not answer."""
    return 1.5 * config.statement_seconds + 1  # the server ends it before


async def _connect(config: Config, holder: Holder | None = None) -> PostgresConnection:
    seconds = min(config.wait_seconds, config.statement_seconds)
    options = {
        "client_encoding": "UTF8",
        "application_name": "sideband",
        "keepalives_idle": max(1, config.lost_seconds // 2),
        "keepalives_interval": max(1, config.lost_seconds // 6),
        "keepalives_count": 3,
        "tcp_user_timeout": config.lost_seconds * 1_000,
    }
    connection = await connect(config.address.get_secret_value(), options, seconds=seconds)
    is_ready = False
    try:
        with anyio.move_on_after(seconds):
            await prepare(connection, config)
            if holder is not None:
                await holder.attach(connection)
            is_ready = True
    finally:
        if not is_ready:
            connection.discard()
    if not is_ready:
        raise psycopg.OperationalError(f"the server did not answer for {seconds:g} s")
    return connection


async def _keep_alive(
    connection: PostgresConnection, open_connection: Callable[[], Awaitable[PostgresConnection]]
) -> None:
    """Keep one connection open, so that the holder keeps its locks while it does nothing."""
    try:
        while True:
            await anyio.wait_readable(connection.pgconn.socket)  # the end of the session
            connection.discard()
            pause = _FIRST_PAUSE
            while connection.closed:
                try:
                    connection = await open_connection()
                except PostgresCutOff:
                    return
                except (psycopg.Error, OSError):
                    await anyio.sleep(pause)
                    pause = min(2 * pause, _MAX_PAUSE)
    finally:
        connection.discard()


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Limit the time of statements, also if the server does not answer, and raise errors of the store."""
    with anyio.move_on_after(seconds) as scope:
        try:
            yield
        except psycopg.Error as error:
            raise store_error(error) from error
    if scope.cancelled_caught:
        raise PostgresBusy(f"the server did not answer for {seconds:g} s", hint="check the server and the network")
