"""The connections to one server: opened when they are needed, lent to requests, checked, and closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from mcp.client import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError
from sideband.ops import OpContext
from sideband.plugins import PluginContext

from .._config import Config, ServerConfig
from .._errors import McpError, McpInterrupted, McpInvalid, McpLoginNeeded, McpRefused, McpTooLarge, McpUnavailable
from .._oauth._access import Access
from .._oauth._bearer import noting_refusal
from ._connection import ServerConnection
from ._opening import opener_of

_Found = TypeVar("_Found")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_HEALTH_SECONDS = 5.0
_CLOSED = "Connection closed"
"""The message of the SDK about a closed connection. Servers use its number for errors of their own."""


@define(eq=False)
class ConnectionPool:
    """The connections to one server.

    A connection that cannot be opened is tried again after a pause, which grows with each failure. Until then, requests
    fail at once with the same error.

    Args:
        server: the name of the server.
        settings: its table.
        config: the limits.
        tasks: runs the connections.
        on_change: called when the server may offer something else: after a new connection, or as it announces.
        own: the context of the plugin, which resolves secrets.
        access: the token of the server, if a person authorizes it.
    """

    server: str
    settings: ServerConfig = field(repr=False)
    config: Config = field(repr=False)
    tasks: TaskGroup = field(repr=False)
    on_change: Callable[[], None] = field(repr=False)
    own: PluginContext = field(repr=False)
    access: Access = field(repr=False)
    _connections: list[ServerConnection] = field(init=False, factory=list, repr=False)
    _opening: anyio.Lock = field(init=False, factory=anyio.Lock, repr=False)
    _freed: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _pause: float = field(init=False, default=0.0)
    _retry_at: float = field(init=False, default=0.0)
    _failed: McpError | None = field(init=False, default=None)

    @asynccontextmanager
    async def lend(self, ctx: OpContext) -> AsyncIterator[ServerConnection]:
        """Lend a connection with room for another request, or open one.

        Raises:
            McpUnavailable: if it could not be opened.
        """
        connection = await self._take(ctx)
        try:
            yield connection
        finally:
            connection.calls -= 1
            connection.used()
            freed, self._freed = self._freed, anyio.Event()
            freed.set()

    async def ask(self, connection: ServerConnection, request: Callable[[], Awaitable[_Found]]) -> _Found:
        """Send a request, and return the answer. Errors of the server become typed ones that name it.

        Raises:
            McpRefused: if the server answers with an error.
            McpInvalid: if it does not follow the protocol.
            McpInterrupted: if the connection has ended.
        """
        try:
            with noting_refusal() as refusal:
                return await request()
        except MCPError as error:
            if (refused := refusal()) is not None:
                raise refused from error
            is_closed = error.code == CONNECTION_CLOSED and error.message == _CLOSED
            if is_closed or connection.failure.error is not None:
                raise self._interrupted(connection) from error
            raise McpRefused(self.server, error.code, error.message) from error
        except ValidationError as error:
            raise McpInvalid(self.server, f"{error.error_count()} fields are invalid") from error
        except InputRequiredRoundsExceededError as error:
            raise McpInvalid(self.server, f"it asked more than {error.max_rounds} times during one call") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise self._interrupted(connection) from error

    def renew(self) -> None:
        """Begin to close all connections, and open others at once when they are needed, also after a failure."""
        self._pause, self._failed = 0.0, None
        self.close()

    def close(self) -> None:
        """Begin to close all connections."""
        for one in self._connections:
            one.close()

    async def closed(self) -> None:
        """Return when all connections are closed."""
        for one in self._connections:
            await one.ended.wait()

    def _interrupted(self, connection: ServerConnection) -> McpError:
        # Also without a reason: a connection that has ended must not be lent again.
        reason = connection.failure.set(McpUnavailable(self.server, "the connection was closed"))
        if isinstance(reason, McpTooLarge | McpInvalid | McpLoginNeeded):
            return reason
        return McpInterrupted(self.server, reason.message)

    async def _take(self, ctx: OpContext) -> ServerConnection:
        while True:
            connection = self._usable()
            if connection is None:
                async with self._opening:
                    connection = self._usable() or await self._open(ctx)
            if connection is None:
                await self._freed.wait()
            elif await self._is_healthy(connection):
                connection.calls += 1
                return connection

    def _usable(self) -> ServerConnection | None:
        """Return the connection with the fewest requests that has room for another one."""
        self._connections = [one for one in self._connections if not one.ended.is_set()]
        usable = [one for one in self._connections if one.is_open and one.calls < self.config.max_concurrent]
        return min(usable, key=lambda one: one.calls, default=None)

    async def _open(self, ctx: OpContext) -> ServerConnection | None:
        """Open another connection; return ``None`` if there are as many as allowed."""
        if len(self._connections) >= self.config.max_connections:
            return None
        if self._failed is not None and anyio.current_time() < self._retry_at:
            raise self._failed
        connection = ServerConnection(self.server, self.config, self.on_change, self.settings)
        try:
            opener = await opener_of(self.server, self.settings, self.config, ctx, own=self.own, access=self.access)
            self._connections.append(connection)
            self.tasks.start_soon(connection.run, opener)
            await connection.ready.wait()
            _ = connection.client
        except McpError as error:
            self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            self._retry_at = anyio.current_time() + self._pause
            self._failed = error
            raise
        self._pause, self._failed = 0.0, None
        self.on_change()
        return connection

    async def _is_healthy(self, connection: ServerConnection) -> bool:
        """Return whether a connection that was silent for long still answers. Otherwise it is closed."""
        if connection.calls or connection.silent_seconds < self.config.health_seconds:
            return True
        with anyio.move_on_after(_HEALTH_SECONDS):
            try:
                await self.ask(connection, connection.client.list_tools)
            except McpRefused:
                return True  # it may have no tools
            except McpError:
                pass
            else:
                return True
        connection.close()
        return False
