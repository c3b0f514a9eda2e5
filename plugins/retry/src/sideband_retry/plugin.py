"""The entry point of the group ``sideband.v1.hook``: answers ``model_error``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.hooks import Compact, GiveUp, ModelError, Park, Retry, hookimpl
from sideband.plugins import PluginContext

from ._config import Config
from ._rules import RetryRules

__all__ = ["Config", "lifespan", "model_error"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[RetryRules]:
    """Yield the rules for the configuration."""
    yield RetryRules(ctx.config)


@hookimpl
def model_error(event: ModelError, ctx: PluginContext) -> Retry | Compact | Park | GiveUp | None:
    """Decide how to react to a failed model call."""
    rules: RetryRules = ctx.state
    return rules.answer(event)
