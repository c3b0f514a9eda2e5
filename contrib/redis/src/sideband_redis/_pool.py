"""The connections of an open store, which all its tasks share."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
from attrs import define, field
from sideband import StoreError

from ._connection import RedisConnection
from ._errors import ConnectionLost, RedisBusy, RedisUnreachable, RedisUnsupported, ServerError, store_error

_FIRST_PAUSE, _MAX_PAUSE = 0.02, 0.5
_OpenConnection = Callable[[], Awaitable[RedisConnection]]


@define(eq=False)
class RedisPool:
    """A number of connections, each used by one task at a time. Connections are opened when they are needed.

    Args:
        open: opens a connection.
        maximum: the maximum number of connections.
        wait_seconds: how long a task waits for a connection, also if the server cannot be reached.
    """

    open: _OpenConnection
    maximum: int
    wait_seconds: float
    _refused: RedisUnsupported | None = field(default=None, init=False)
    _free: anyio.Semaphore = field(init=False)
    _idle: list[RedisConnection] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._free = anyio.Semaphore(self.maximum)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[RedisConnection]:
        """Lend a connection.

        Raises:
            RedisBusy: if all are in use for longer than the limit.
            StoreError: if none can be opened.
        """
        with anyio.move_on_after(self.wait_seconds) as scope:
            await self._free.acquire()
        if scope.cancelled_caught:
            problem = f"all {self.maximum} connections were in use for {self.wait_seconds:g} s"
            raise RedisBusy(problem, hint="raise `max_connections`")
        try:
            if self._refused is not None:
                raise RedisUnsupported(self._refused.problem, hint=self._refused.hint)
            connection = await self._take()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        finally:
            self._free.release()

    def refuse(self, reason: RedisUnsupported | None) -> None:
        """Lend no connection from now on, for a reason; ``None`` ends that."""
        self._refused = reason

    async def close(self) -> None:
        """Close all connections that are not in use."""
        while self._idle:
            await self._idle.pop().discard()

    async def _take(self) -> RedisConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            await connection.discard()
        return await patiently(self.open, self.wait_seconds)

    async def _give_back(self, connection: RedisConnection) -> None:
        if connection.is_usable():
            self._idle.append(connection)
        else:
            await connection.discard()


async def patiently(open_connection: _OpenConnection, seconds: float) -> RedisConnection:
    """Open a connection. While the server cannot be reached, try again until the time has passed.

    Raises:
        StoreError: if it cannot be opened; ``RedisUnreachable`` after the time.
    """
    deadline, pause = anyio.current_time() + seconds, _FIRST_PAUSE
    refusal: ServerError | None = None
    while True:
        try:
            return await open_connection()
        except ServerError as error:
            if not error.is_temporary:
                raise store_error(error) from error
            refusal, cause = error, cast("Exception", error)
        except (OSError, ConnectionLost) as error:
            if isinstance(error, StoreError):
                raise
            cause = error
        if isinstance(cause, ssl.SSLCertVerificationError) or anyio.current_time() + pause > deadline:
            if refusal is not None:
                raise store_error(refusal) from cause
            raise RedisUnreachable(" ".join(str(cause).split()) or type(cause).__name__) from cause
        await anyio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE)
