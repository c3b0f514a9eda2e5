"""Publish events without delaying what they are about: they wait in a bounded buffer, and a task sends them."""

from __future__ import annotations

import json
import logging
import os
import platform
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
from attrs import define, field
from sideband import StoreError

from ._channel import channel_of, connect_once
from ._connection import RedisConnection
from ._errors import ConnectionLost, ServerError
from ._host_event import MAX_TEXT
from ._models import Config

_log = logging.getLogger("sideband.redis")
_MAX_EVENTS, _BATCH = 1_000, 100
_FIRST_PAUSE, _MAX_PAUSE = 0.05, 2.0
_FLUSH_SECONDS = 1.0
_FAULTS = (OSError, ConnectionLost, ServerError, StoreError)


@define(eq=False)
class Publisher:
    """Publishes events of a host. When the buffer is full, events are dropped; the next one says how many.

    Args:
        config: the server.
    """

    config: Config
    _waiting: deque[str] = field(factory=deque, init=False)
    _dropped: int = field(default=0, init=False)
    _is_sending: bool = field(default=False, init=False)
    _changed: anyio.Event = field(factory=anyio.Event, init=False)
    _connection: RedisConnection | None = field(default=None, init=False)

    def note(self, event: str, **parts: str | float | None) -> None:
        """Publish an event soon. Does not wait."""
        if len(self._waiting) >= _MAX_EVENTS:
            self._dropped += 1
            return
        dropped, self._dropped = self._dropped, 0
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        data = {"event": event, "time": now, "machine": platform.node(), "process": os.getpid(), **parts}
        if dropped:
            data["dropped"] = dropped
        kept = {name: _short(value) for name, value in data.items() if value not in (None, "")}
        self._waiting.append(json.dumps(kept, separators=(",", ":")))
        self._change()

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            if not self._waiting:
                await self._changed.wait()
                continue
            try:
                await self._send()
            except _FAULTS as error:
                if pause == _FIRST_PAUSE:
                    _log.warning("events cannot be published: %s", error)
                await anyio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
            else:
                pause = _FIRST_PAUSE
            finally:
                self._is_sending = False
                self._change()

    async def flush(self) -> None:
        """Return when everything was sent."""
        while self._waiting or self._is_sending:
            await self._changed.wait()

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.discard()

    async def _send(self) -> None:
        if self._connection is None or not self._connection.is_usable():
            await self.close()
            self._connection = await connect_once(self.config)
        self._is_sending = True
        channel = channel_of(self.config)
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        try:
            answers = await self._connection.exchange(*(("PUBLISH", channel, text) for text in batch))
        except BaseException:
            # Some may have been sent, and none may be sent twice.
            self._dropped += len(batch)
            raise
        refused = [one for one in answers if isinstance(one, ServerError)]
        self._dropped += len(refused)
        if refused:
            raise refused[0]

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@asynccontextmanager
async def publishing(config: Config) -> AsyncIterator[Publisher]:
    """Yield a publisher, and give it a moment at the end to send what waits."""
    publisher = Publisher(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publisher.run)
        try:
            yield publisher
        finally:
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await publisher.flush()
                tasks.cancel_scope.cancel()
    await publisher.close()


def _short(value: object) -> object:
    return value[:MAX_TEXT] if isinstance(value, str) else value
