"""Asks all providers at the same time what they have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
from attrs import frozen
from sideband import SidebandError
from sideband.contexts import ModelContext
from sideband.plugins import PluginContext, PluginNotFound
from sideband.providers import ModelInfo, Provider

from ._errors import ProviderUnknown
from ._state import ModelCatalog

_SECONDS = 15.0


@frozen
class Surveyed:
    """What one provider has, or why it can't be asked."""

    provider: str
    models: Sequence[ModelInfo] = ()
    error: SidebandError | None = None


async def open_provider(name: str, ctx: ModelContext) -> tuple[Provider, PluginContext]:
    """The provider of that name, and its context.

    Raises:
        ProviderUnknown: there is none.
        PluginError: its plugin can't be used.
    """
    try:
        return await ctx.provider(name)
    except PluginNotFound:
        raise ProviderUnknown(name, await ctx.providers()) from None


async def survey(names: Sequence[str], ctx: ModelContext) -> tuple[Surveyed, ...]:
    """What each of these providers has, in the same order. None keeps the others waiting for longer than its limit."""
    found: dict[str, Surveyed] = {}
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(partial(_ask, name, ctx, found))
    return tuple(found[name] for name in names)


async def _ask(name: str, ctx: ModelContext, found: dict[str, Surveyed]) -> None:
    models: ModelCatalog = ctx.state
    try:
        provider, provider_ctx = await open_provider(name, ctx)
        found[name] = Surveyed(name, await models.ask(provider, provider_ctx, seconds=_SECONDS))
    except SidebandError as error:
        found[name] = Surveyed(name, error=error)
