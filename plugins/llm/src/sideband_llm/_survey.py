"""Lists the models of all providers concurrently."""

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
    """The models of a provider, or the error that made them unavailable."""

    provider: str
    models: Sequence[ModelInfo] = ()
    error: SidebandError | None = None


async def open_provider(name: str, ctx: ModelContext) -> tuple[Provider, PluginContext]:
    """Return the provider of that name and its context.

    Raises:
        ProviderUnknown: if no plugin has a provider of that name.
        PluginError: if its plugin is unusable.
    """
    try:
        return await ctx.provider(name)
    except PluginNotFound:
        raise await unknown_provider(name, ctx) from None


async def unknown_provider(name: str, ctx: ModelContext) -> SidebandError:
    """Return the error for a name that no provider has.

    A plugin with an invalid configuration lacks the providers that it defines there, such as `openai-x` of `openai`.
    Then the error is that of the plugin.
    """
    known = await ctx.providers()
    for owner in known:
        if name.startswith(f"{owner}-"):
            try:
                await ctx.provider(owner)
            except SidebandError as error:
                return error
    return ProviderUnknown(name, known)


async def survey(names: Sequence[str], ctx: ModelContext) -> tuple[Surveyed, ...]:
    """Return the models of each provider, in the given order. Each provider has its own time limit."""
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
