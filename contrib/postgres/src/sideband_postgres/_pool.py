"""The connections of an open store, which all its tasks share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import psycopg
from attrs import define, field

from ._connection import PostgresConnection, Refused
from ._errors import PostgresBusy, is_temporary, store_error

_FIRST_PAUSE, _MAX_PAUSE = 0.02, 0.5
# A server that starts refuses connections as one does that does not know the user, and libpq tells no code for either.
_REFUSED_SECONDS = 3.0


@define(eq=False)
class Pool:
    """A number of connections, each used by one task at a time. Connections are opened when they are needed.

    Args:
        open: opens a connection.
        maximum: the maximum number of connections.
        wait_seconds: how long a task waits for a connection, also if the server cannot be reached.
    """

    open: Callable[[], Awaitable[PostgresConnection]]
    maximum: int
    wait_seconds: float
    _free: anyio.Semaphore = field(init=False)
    _idle: list[PostgresConnection] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._free = anyio.Semaphore(self.maximum)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PostgresConnection]:
        """Lend a connection.

        Raises:
            PostgresBusy: if all are in use for longer than the limit.
            StoreError: if none can be opened.
        """
        with anyio.move_on_after(self.wait_seconds) as scope:
            await self._free.acquire()
        if scope.cancelled_caught:
            problem = f"all {self.maximum} connections were in use for {self.wait_seconds:g} s"
            raise PostgresBusy(problem, hint="raise `max_connections`")
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close all connections that are not in use."""
        while self._idle:
            self._idle.pop().discard()

    async def _take(self) -> PostgresConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.discard()
        return await patiently(self.open, self.wait_seconds)

    def _give_back(self, connection: PostgresConnection) -> None:
        if connection.is_usable():
            self._idle.append(connection)
        else:
            connection.discard()


async def patiently(open_connection: Callable[[], Awaitable[PostgresConnection]], seconds: float) -> PostgresConnection:
    """Open a connection. While the server cannot be reached, try again until the time has passed.

    Raises:
        StoreError: if it cannot be opened; ``PostgresUnreachable`` after the time.
    """
    begin, pause = anyio.current_time(), _FIRST_PAUSE
    deadline, refused_deadline = begin + seconds, begin + min(seconds, _REFUSED_SECONDS)
    while True:
        try:
            return await open_connection()
        except psycopg.Error as error:
            end = refused_deadline if isinstance(error, Refused) else deadline
            if not is_temporary(error) or anyio.current_time() + pause > end:
                raise store_error(error) from error
        await anyio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE)
