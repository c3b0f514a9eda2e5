"""A cache of the models of each provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

import anyio
from attrs import define, field, frozen
from sideband import SidebandError
from sideband.messages import Usage
from sideband.plugins import PluginContext
from sideband.providers import ModelInfo, Prices, Provider, ProviderError, ProviderTimeout

from ._accounts import Accounts
from ._foreign import ProviderErrors
from ._model_names import ModelName

_CACHE_SECONDS = 3_600.0
# A failed request is repeated soon, but not before every model call.
_FAILURE_CACHE_SECONDS = 60.0
_CALL_SECONDS = 5.0


@frozen
class _CachedModels:
    models: Mapping[str, ModelInfo]
    until: float


@define(eq=False)
class ModelCatalog:
    """Caches the models of all providers. Each host has one.

    Args:
        aliases: short names, each for a ``provider:model``.
        prices: the configured prices by ``provider:model``. They replace those of the provider.

    Attributes:
        accounts: what calls with a budget have used.
    """

    aliases: Mapping[str, str]
    prices: Mapping[str, Prices]
    accounts: Accounts = field(factory=Accounts, init=False)
    _cache: dict[str, _CachedModels] = field(factory=dict, init=False)
    _locks: dict[str, anyio.Lock] = field(factory=dict, init=False)

    async def ask(self, provider: Provider, ctx: PluginContext, *, seconds: float) -> Sequence[ModelInfo]:
        """Request the models of a provider and cache them.

        Args:
            provider: the provider.
            ctx: the context of its plugin.
            seconds: the time limit.

        Raises:
            SidebandError: if the provider fails.
            ProviderTimeout: if the time limit is exceeded.
        """
        name = provider.name
        with anyio.move_on_after(seconds), ProviderErrors(name):
            infos = tuple(await provider.models(ctx))
            if stray := next((one for one in infos if not isinstance(one, ModelInfo)), None):
                raise ProviderError(name, f"expected ModelInfo in the list of models, got {type(stray).__name__}")
            self._store(name, infos, _CACHE_SECONDS)
            return infos
        raise ProviderTimeout(name, f"listing the models timed out after {seconds:g} s", retryable=True)

    async def find(self, name: ModelName, provider: Provider, ctx: PluginContext) -> ModelInfo | None:
        """Return the properties of a model, or ``None`` if the provider fails or does not list it."""
        models = self._fresh(name.provider)
        if models is None:  # only then: all sessions share the lock
            async with self._locks.setdefault(name.provider, anyio.Lock()):
                models = self._fresh(name.provider)
                if models is None:
                    try:
                        await self.ask(provider, ctx, seconds=_CALL_SECONDS)
                    except SidebandError:
                        # The model call will report the problem.
                        self._store(name.provider, (), _FAILURE_CACHE_SECONDS)
                    models = self._cache[name.provider].models
        return models.get(name.model)

    def _fresh(self, provider: str) -> Mapping[str, ModelInfo] | None:
        """Return the cached models of a provider, or ``None`` if they must be requested."""
        cached = self._cache.get(provider)
        return None if cached is None or cached.until < monotonic() else cached.models

    def prices_of(self, name: ModelName, info: ModelInfo | None) -> Prices | None:
        """Return the prices of a model from the configuration, else from its provider."""
        return self.prices.get(str(name)) or (info.prices if info else None)

    def priced(self, usage: Usage, name: ModelName, info: ModelInfo | None) -> Usage:
        """Return the usage with its cost: by configured prices, else as the provider reports it, else by its prices."""
        prices = self.prices_of(name, info)
        if prices is None or (usage.cost is not None and str(name) not in self.prices):
            return usage
        return usage.model_copy(update={"cost": prices.cost(usage)})

    def _store(self, provider: str, infos: Sequence[ModelInfo], seconds: float) -> None:
        models = {info.id: info for info in infos}
        self._cache[provider] = _CachedModels(models, monotonic() + seconds)
