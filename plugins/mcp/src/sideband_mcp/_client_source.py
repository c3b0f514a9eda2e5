"""A server that a client passes for one session, as a source of tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from attrs import field, frozen
from sideband.hooks import ClientServer
from sideband.plugins import PluginContext

from ._config import ServerConfig
from ._source import OpenedServer


@frozen
class ClientSource:
    """A server that a client passes, whose user has accepted it.

    Attributes:
        name: the name of the server.
        table: its table.
    """

    name: str
    table: dict[str, Any] = field(repr=False)
    scope: Literal["session"] = "session"

    @asynccontextmanager
    async def open(self, ctx: PluginContext) -> AsyncIterator[OpenedServer]:
        """Open the source. The server is closed with the last session that uses it."""
        await ctx.dispatch("mcp.add", {"server": self.name, **self.table})
        yield OpenedServer(self.name, ServerConfig(**self.table), ctx)


def client_source(one: ClientServer) -> ClientSource:
    """Return the source for a server.

    Raises:
        ValidationError: if it cannot be a server.
    """
    table = ServerConfig(
        command=tuple(one.command), environment=dict(one.environment), read=tuple(one.read), network=one.network
    )
    return ClientSource(one.name, table.model_dump(include={"command", "environment", "read", "network"}))
