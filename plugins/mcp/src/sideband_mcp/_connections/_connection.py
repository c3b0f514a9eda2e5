"""One connection to a server, in a task of its own."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

import anyio
from attrs import define, field
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation, ToolListChangedNotification

from .._config import Config, ServerConfig
from .._errors import McpError, McpInvalid, McpUnavailable
from .._transports._failure import ConnectionFailure
from .._version import __version__
from ._callbacks import Callbacks
from ._exchange import Exchange

# A server could fill the log of the host. What matters of its faults is in the errors of calls.
for _name in ("mcp.client", "mcp.shared"):
    if logging.getLogger(_name).level == logging.NOTSET:
        logging.getLogger(_name).setLevel(logging.CRITICAL)

_LONGEST_ERROR = 2_000
_MAX_LISTINGS = 20
"""How often a server may announce changes of its tools within the time of one listing."""

Opener = Callable[[ConnectionFailure], AbstractAsyncContextManager[TransportStreams]]
"""Opens the transport of a new connection."""


@define(eq=False)
class ServerConnection:
    """One connection. ``run`` opens it, keeps it while it is used, and closes it.

    Args:
        server: the name of the server.
        config: the limits.
        on_change: called when the server announces that its tools have changed.
        settings: the table of the server.

    Attributes:
        failure: why it failed, if it has.
        calls: the number of requests that use it.
        exchanges: the calls that use it.
        ready: set once it is open or has failed.
        ended: set once it is closed.
    """

    server: str
    config: Config = field(repr=False)
    on_change: Callable[[], None] = field(repr=False)
    settings: ServerConfig = field(repr=False)
    failure: ConnectionFailure = field(init=False, factory=ConnectionFailure)
    calls: int = field(init=False, default=0)
    exchanges: list[Exchange] = field(init=False, factory=list, repr=False)
    ready: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    ended: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _client: Client | None = field(init=False, default=None, repr=False)
    _last_used: float = field(init=False, default=0.0)
    _listings: list[float] = field(init=False, factory=list, repr=False)
    _scope: anyio.CancelScope = field(init=False, factory=anyio.CancelScope, repr=False)

    @property
    def client(self) -> Client:
        """The client of an open connection.

        Raises:
            McpError: if it has failed.
        """
        if self.failure.error is not None:
            raise self.failure.error
        if self._client is None:
            raise McpUnavailable(self.server, "the connection is closed")
        return self._client

    @property
    def is_open(self) -> bool:
        """Whether it can be used for another call."""
        return self._client is not None and self.failure.error is None

    async def run(self, opener: Opener) -> None:
        """Open the connection, and close it once it has failed, was idle for long, or ``close`` was called."""
        self._scope.deadline = anyio.current_time() + self.config.connect_seconds
        try:
            with self._scope:
                async with Client(
                    opener(self.failure),
                    message_handler=self._take,
                    client_info=Implementation(name="sideband", version=__version__),
                    cache=None,
                    **Callbacks(self.settings, lambda: self.exchanges).options(),
                ) as client:
                    client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                    self._scope.deadline = math.inf
                    self._client = client
                    self.used()
                    self.ready.set()
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._follow, client)
                        await self._until_idle()
                        self._client = None
                        tasks.cancel_scope.cancel()
                    self._scope.deadline = anyio.current_time() + self.config.close_seconds
        except Exception as error:  # noqa: BLE001  a server may cause any error of the SDK and its libraries
            first = _first(error)
            found = first if isinstance(first, McpError) else McpUnavailable(self.server, _describe(first))
            self.failure.set(found)
        finally:
            if self._scope.cancelled_caught and not self.ready.is_set():
                seconds = self.config.connect_seconds
                self.failure.set(
                    McpUnavailable(
                        self.server,
                        f"it did not connect within {seconds:g} s",
                        hint="raise `connect_seconds` in `[plugins.mcp]` if it needs longer",
                    )
                )
            self._client = None
            self.failure.set(McpUnavailable(self.server, "the connection is closed"))
            self.ready.set()
            self.ended.set()

    def used(self) -> None:
        """Note that the connection was used."""
        self._last_used = anyio.current_time()

    def listing(self) -> None:
        """Note that the tools are listed.

        Raises:
            McpInvalid: if the server announces changes without end.
        """
        now = anyio.current_time()
        self._listings = [*(one for one in self._listings if one > now - self.config.list_seconds), now]
        if len(self._listings) > _MAX_LISTINGS:
            raise McpInvalid(
                self.server,
                f"it announced changes of its tools more than {_MAX_LISTINGS} times within "
                f"{self.config.list_seconds:g} s",
            )

    @property
    def silent_seconds(self) -> float:
        """The time since it was last used."""
        return anyio.current_time() - self._last_used

    def close(self) -> None:
        """Begin to close it. Calls that run are cancelled."""
        self._client = None
        self._scope.cancel()

    async def _until_idle(self) -> None:
        while self.failure.error is None:
            left = self.config.idle_seconds - self.silent_seconds
            if left <= 0 and not self.calls:
                return
            with anyio.move_on_after(max(left, 1.0)):
                await self.failure.happened.wait()

    async def _take(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.on_change()

    async def _follow(self, client: Client) -> None:
        """Follow the changes of servers that announce them in a stream, as newer versions of the protocol say."""
        with suppress(MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self.on_change()


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Check nothing: a pattern in a schema of the server could stop the host, and a model needs no schema to read."""


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _describe(error: BaseException) -> str:
    text = str(error)[:_LONGEST_ERROR]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
