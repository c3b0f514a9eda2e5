"""The entry point of the group `sideband.v1.hook`: publishes what happens in the host, if `publish` is set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.plugins import PluginContext

from ._models import Config
from ._observer import PublishingHooks
from ._publisher import Publisher, publishing

__all__ = ["Config", "lifespan", "sideband_hooks"]


def sideband_hooks(config: Config) -> PublishingHooks | None:
    """Return the hooks, if events are published."""
    return PublishingHooks() if config.publish else None


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Publisher | None]:
    """Yield a publisher, or ``None`` if nothing is published."""
    if not ctx.config.publish:
        yield None
        return
    async with publishing(ctx.config) as publisher:
        yield publisher
