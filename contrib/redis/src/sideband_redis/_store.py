"""The store: each operation is a command or a script, and is on the disk of the server when it returns."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from attrs import define, field
from sideband import StoreError
from sideband.store import Document, Record, Transaction

from ._calls import Caller, NotYet
from ._channel import connect_once
from ._connection import RedisConnection
from ._errors import ConnectionLost, RedisBusy, RedisUnreachable, ServerError, store_error
from ._holders import RedisLocks, enter, leave
from ._keeper import keep_alive
from ._models import Config
from ._operations import (
    append_records,
    delete_document,
    delete_stream,
    get_document,
    key_of,
    list_keys,
    put_document,
    read_records,
    text_of,
)
from ._pool import RedisPool, patiently
from ._server import check_server
from ._transactions import RedisTransaction

_Result = TypeVar("_Result")
_Job = Callable[[RedisConnection], Awaitable[_Result]]
_CLOSE_SECONDS = 5.0
# What is not released by then ends by itself, or is released by the task that keeps the host alive.
_RELEASE_SECONDS = 0.5
_FIRST_PAUSE, _MAX_PAUSE, _LOCK_PAUSE = 0.002, 0.05, 0.05


@define(eq=False)
class RedisStore:
    """A ``sideband.store.SharedStore`` on Redis or Valkey. Use ``open_redis`` to open it.

    All writes are on the disk of the server when they return, also those with ``durable=False``: a host lives on when
    the server crashes, and what it has written must not be lost then.

    Attributes:
        config: its configuration.
    """

    config: Config
    _pool: RedisPool = field(repr=False)
    _caller: Caller = field(repr=False)
    _locks: RedisLocks = field(repr=False)
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False, repr=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self._run(partial(get_document, caller=self._caller, key=key_of(key)), is_read=True)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:  # noqa: ARG002  always
        """Write ``value`` and return its new version; ``version`` is the expected current one (0 if none exists)."""
        path, text = key_of(key), text_of(key, value)
        return await self._run(partial(put_document, caller=self._caller, key=path, text=text, version=version))

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:  # noqa: ARG002  always
        """Delete a document, and return whether it existed."""
        return await self._run(partial(delete_document, caller=self._caller, key=key_of(key), version=version))

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted by code point."""
        return await self._run(partial(list_keys, caller=self._caller, prefix=key_of(prefix)), is_read=True)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:  # noqa: ARG002  always
        """Append records to a stream atomically, and return the position of the first one."""
        name, texts = key_of(stream), [text_of(stream, value) for value in values]
        return await self._run(partial(append_records, caller=self._caller, stream=name, texts=texts))

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream, from ``start``, in order."""
        job = partial(read_records, caller=self._caller, stream=key_of(stream), start=start, limit=limit)
        return await self._run(job, is_read=True)

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:  # noqa: ARG002  always
        """Delete a stream, and return whether it existed."""
        return await self._run(partial(delete_stream, caller=self._caller, stream=key_of(stream)))

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:  # noqa: ARG002  always
        """Run the body as one transaction, which is rolled back if it raises or is cancelled. Cannot be nested."""
        with anyio.move_on_after(self.config.wait_seconds) as scope:
            await self._turn.acquire()
        if scope.cancelled_caught:
            raise _waited(self.config, "another transaction is open")
        transaction = RedisTransaction(self._caller, secrets.token_hex(8), self._run)
        try:
            try:
                await transaction.begin()
                try:
                    yield transaction
                finally:
                    transaction.end()
                await transaction.commit()
            except BaseException:
                with anyio.move_on_after(_RELEASE_SECONDS, shield=True), suppress(StoreError):
                    await transaction.release()
                raise
        finally:
            self._turn.release()

    async def sync(self) -> None:
        """Do nothing: all writes are on disk when they return."""
        await anyio.lowlevel.checkpoint()

    def unsynced(self) -> Callable[[], None] | None:
        """Return ``None``: all writes are on disk when they return."""
        return None

    async def try_lock(self, name: str) -> bool:
        """Take a lock without waiting for its holder, and return whether it was free.

        If the holder has shown no sign of life for ``lost_seconds``, it keeps the lock for ``grace_seconds``, and loses
        all its locks after that.
        """
        deadline: float | None = None
        while True:
            now = anyio.current_time()
            deadline = deadline or now + self.config.grace_seconds
            is_taken = await self._try_lock(name, by_force=now >= deadline)
            if is_taken is not None:
                return is_taken
            await anyio.sleep(min(_LOCK_PAUSE, max(deadline - anyio.current_time(), 0)))

    async def unlock(self, name: str) -> None:
        """Release a lock that this open store holds. If that fails, it is released as soon as the server is back."""
        attempt = self._locks.held(name)
        if attempt is None:
            await anyio.lowlevel.checkpoint()
            return
        try:
            # Another attempt has another number, so this can be repeated.
            await self._run(partial(self._locks.release, name=name, attempt=attempt), is_read=True)
        except BaseException:
            self._locks.give_up(name, attempt)
            raise

    async def _try_lock(self, name: str, *, by_force: bool) -> bool | None:
        attempt = self._locks.begin()
        try:
            return await self._run(partial(self._locks.take, name=name, attempt=attempt, by_force=by_force))
        except BaseException:
            self._locks.give_up(name, attempt)  # it may have been taken
            with anyio.move_on_after(_RELEASE_SECONDS, shield=True), suppress(StoreError):
                await self._run(self._locks.release_given_up)
            raise

    async def _run(self, job: _Job[_Result], *, is_read: bool = False) -> _Result:
        """Run a job on a connection. Wait while the server cannot execute it; repeat it if it only reads."""
        deadline, pause = anyio.current_time() + self.config.wait_seconds, _FIRST_PAUSE
        while True:
            async with self._pool.connection() as connection:
                try:
                    return await job(connection)
                except ServerError as error:
                    raise store_error(error) from error
                except ConnectionLost as error:
                    if not is_read:
                        raise RedisUnreachable(
                            f"{error}; a write may have been made",
                            hint="check that the server runs, and whether the write was made before you repeat it",
                        ) from error
                    failure: StoreError = RedisUnreachable(str(error))
                except NotYet as error:
                    failure = _waited(self.config, str(error))
            if anyio.current_time() + pause > deadline:
                raise failure
            await anyio.sleep(random.uniform(pause / 2, pause))  # noqa: S311  not for cryptography
            pause = min(2 * pause, _MAX_PAUSE)


@asynccontextmanager
async def open_redis(config: Config, folder: Path | None = None) -> AsyncIterator[RedisStore]:  # noqa: ARG001  a store gets it
    """Connect to the server, check that it keeps what it confirms, and yield the open store.

    Args:
        config: the server, and limits.
        folder: not used; the store has no files.

    Raises:
        StoreError: if the server cannot be reached, or cannot be used.

    Example:
        >>> async with open_redis(Config(address="redis://db.example")) as store:
        ...     await store.put("session/1", {"title": "first"}, version=0)
    """
    open_connection = partial(_connect, config)
    async with AsyncExitStack() as stack:
        keeper = await patiently(open_connection, config.wait_seconds)
        stack.push_async_callback(keeper.discard)
        try:
            caller = await enter(keeper, config)
        except ServerError as error:
            raise store_error(error) from error
        except ConnectionLost as error:
            raise RedisUnreachable(str(error)) from error
        pool = RedisPool(open_connection, config.max_connections, config.wait_seconds)
        stack.push_async_callback(pool.close)
        locks = RedisLocks(caller)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep_alive, keeper, open_connection, caller, locks, pool)
                try:
                    yield RedisStore(config, pool, caller, locks)
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(StoreError, ConnectionLost):
                        async with pool.connection() as connection:
                            await leave(connection, caller)
        except BaseExceptionGroup as group:  # its only member comes from the block
            raise group.exceptions[0] from group.exceptions[0].__cause__


async def _connect(config: Config) -> RedisConnection:
    connection = await connect_once(config)
    try:
        await check_server(connection, config, is_new=True)
    except BaseException:
        await connection.discard()
        raise
    return connection


def _waited(config: Config, problem: str) -> StoreError:
    return RedisBusy(f"{problem}, for {config.wait_seconds:g} s", hint="retry; keep transactions short")
