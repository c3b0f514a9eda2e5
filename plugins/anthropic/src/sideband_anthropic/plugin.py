"""Plugin `anthropic`: registration, configuration and the connections of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.plugins import PluginContext
from sideband_model_client import ServiceConnections

from ._config import Config
from ._provider import Anthropic

__all__ = ["Config", "lifespan", "sideband_providers"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[ServiceConnections]:
    """Hold the connections open for the lifetime of the host."""
    async with ServiceConnections(ctx.config.ca_file) as connections:
        yield connections


def sideband_providers() -> list[Anthropic]:
    """Return the provider."""
    return [Anthropic()]
