"""The task that keeps an open store alive, so that it keeps its locks while it does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from sideband import StoreError

from ._calls import Caller, NotYet
from ._connection import RedisConnection
from ._errors import ConnectionLost, RedisCutOff, RedisUnsupported, ServerError
from ._holders import RedisLocks, renew
from ._pool import RedisPool
from ._server import check_server

_FIRST_PAUSE, _MAX_PAUSE = 0.02, 0.5
_FAULTS = (OSError, ConnectionLost, NotYet, ServerError, StoreError)


async def keep_alive(
    connection: RedisConnection,
    open_connection: Callable[[], Awaitable[RedisConnection]],
    caller: Caller,
    locks: RedisLocks,
    pool: RedisPool,
) -> None:
    """Renew the holder, until it is cut off. If the server starts again, do so at once.

    Args:
        connection: the first connection.
        open_connection: opens another one.
        caller: calls the server as the holder.
        locks: its locks.
        pool: lends no connections while the server may lose data.
    """
    pause = _FIRST_PAUSE
    try:
        while True:
            try:
                if not connection.is_usable():
                    await connection.discard()
                    connection = await open_connection()
                await check_server(connection, caller.config)
                await renew(connection, caller)
                await locks.release_given_up(connection)
            except RedisCutOff:
                return
            except _FAULTS as error:
                if isinstance(error, RedisUnsupported):
                    pool.refuse(error)
                await anyio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
                continue
            pool.refuse(None)
            pause = _FIRST_PAUSE
            with anyio.move_on_after(caller.config.lost_seconds / 3):
                await connection.wait_for_end()
    finally:
        await connection.discard()
