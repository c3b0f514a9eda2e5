"""A tool for each station of the configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from sideband import Level
from sideband.plugins import PluginContext
from sideband.tools import Tool, ToolContext

from .config import Config

__all__ = ["Config", "sideband_tools"]


class OpenStations:
    """The stations of one host."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    async def list(self) -> list[Tool]:
        """Return a tool for each station."""
        return [_tool(name) for name in self.names]

    async def changed(self) -> None:
        """Wait for ever: the configuration does not change while a host runs."""
        await anyio.sleep_forever()


class Stations:
    """The source of the tools."""

    name = "tides"
    scope = "host"

    @asynccontextmanager
    async def open(self, ctx: PluginContext) -> AsyncIterator[OpenStations]:
        """Open the source."""
        yield OpenStations(ctx.config.stations)


def _tool(station: str) -> Tool:
    async def run(arguments: dict[str, Any], ctx: ToolContext) -> Any:
        return await ctx.dispatch("tides.high_waters", {"station": station, **arguments})

    return Tool(
        name=f"tides.{station}",
        description=f"The next high waters at {station}.",
        parameters={"type": "object", "properties": {}},
        validate=dict,
        run=run,
        level=Level.MONITORED,
        read_only=True,
    )


def sideband_tools() -> list[Stations]:
    """Register the source."""
    return [Stations()]
