"""The entry point of the group ``sideband.v1.hook``: answers ``model_error``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.hooks import Compact, GiveUp, ModelError, Park, Retry, hookimpl
from sideband.plugins import PluginContext

from ._config import Config
from ._policy import RetryPolicy

__all__ = ["Config", "lifespan", "model_error"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[RetryPolicy]:
    """The policy that the configuration describes."""
    yield RetryPolicy(ctx.config)


@hookimpl
def model_error(event: ModelError, ctx: PluginContext) -> Retry | Compact | Park | GiveUp | None:
    """Say what follows on a failed model call."""
    policy: RetryPolicy = ctx.state
    return policy.answer(event)
