"""Plugin `openai`: registration, configuration and the connections of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.plugins import PluginContext
from sideband_model_client import ServiceConnections

from ._config import Config
from ._local import guessed_providers
from ._provider import OpenAIProvider

__all__ = ["Config", "lifespan", "sideband_providers"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[ServiceConnections]:
    """Hold the connections open for the lifetime of the host."""
    async with ServiceConnections(ctx.config.ca_file) as connections:
        yield connections


def sideband_providers(config: Config) -> list[OpenAIProvider]:
    """Return the providers of OpenAI, of the configured services and of servers that may run on this machine."""
    configured = {f"openai-{name}": service for name, service in config.services.items()}
    return [
        OpenAIProvider("openai", config, environment=True),
        *(OpenAIProvider(name, service) for name, service in configured.items()),
        *(one for one in guessed_providers() if config.local and one.name not in configured),
    ]
