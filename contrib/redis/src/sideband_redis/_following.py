"""Follow what all hosts publish."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

import anyio
from attrs import define, field
from pydantic import ValidationError

from ._channel import channel_of, connect_once
from ._connection import RedisConnection
from ._errors import ConnectionLost
from ._host_event import HostEvent
from ._models import Config
from ._pool import patiently

_MAX_BYTES = 65_536


@define(eq=False)
class HostEvents:
    """An asynchronous iterator of the events of all hosts, which never ends.

    Attributes:
        skipped: how many messages were not events of a host, such as those of another program.
        interruptions: how often the connection broke. What was published meanwhile is lost.
    """

    _config: Config = field(repr=False)
    _connection: RedisConnection = field(repr=False)
    skipped: int = field(default=0, init=False)
    interruptions: int = field(default=0, init=False)

    def __aiter__(self) -> Self:
        """Return the stream."""
        return self

    async def __anext__(self) -> HostEvent:
        """Return the next event.

        Raises:
            RedisUnreachable: if the connection broke, and the server cannot be reached for ``wait_seconds``.
        """
        while True:
            try:
                message = await self._message()
            except ConnectionLost:
                self.interruptions += 1
                await self.close()
                self._connection = await patiently(partial(_subscribe, self._config), self._config.wait_seconds)
                continue
            if not (isinstance(message, list) and message[0] == b"message"):
                continue  # it answers a PING
            event = _event_of(message[2])
            if event is not None:
                return event
            self.skipped += 1

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.discard()

    async def _message(self) -> Any:
        """Return the next message. A server that sends none is asked whether it is there."""
        for _ in range(2):
            with anyio.move_on_after(self._config.command_seconds):
                return await self._connection.push()
            await self._connection.send("PING")
        raise ConnectionLost("the server does not answer")


@asynccontextmanager
async def follow_events(config: Config) -> AsyncIterator[HostEvents]:
    """Yield the events that hosts publish from now on.

    The server keeps none: a follower that is not connected misses them. The ledgers have all effects.

    Args:
        config: the server and the prefix, as in the table ``[plugins.redis]`` of the hosts.

    Raises:
        StoreError: if the server cannot be reached.

    Example:
        >>> async with follow_events(Config(address="redis://db.example")) as events:
        ...     async for one in events:
        ...         print(one.machine, one.event, one.op)
    """
    stream = HostEvents(config, await patiently(partial(_subscribe, config), config.wait_seconds))
    try:
        yield stream
    finally:
        await stream.close()


async def _subscribe(config: Config) -> RedisConnection:
    connection = await connect_once(config)
    try:
        await connection.ask("SUBSCRIBE", channel_of(config))
    except BaseException:
        await connection.discard()
        raise
    return connection


def _event_of(message: object) -> HostEvent | None:
    if not isinstance(message, bytes) or len(message) > _MAX_BYTES:
        return None
    try:
        return HostEvent.model_validate_json(message)
    except ValidationError:
        return None
