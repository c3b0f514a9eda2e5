"""The provider `anthropic`: registration, configuration and the connections of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.plugins import PluginContext

from ._config import Config
from ._provider import Anthropic
from ._transport import Transport

__all__ = ["Config", "lifespan", "sideband_providers"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Transport]:
    """Keep connections for as long as the host lives."""
    config: Config = ctx.config
    transport = Transport(ctx.plugin, config.connect_timeout, config.idle_timeout, config.ca_file)
    try:
        yield transport
    finally:
        await transport.aclose()


def sideband_providers() -> list[Anthropic]:
    """The one provider."""
    return [Anthropic()]
