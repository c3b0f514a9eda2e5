"""What is known about models: asked of their providers, and kept for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
from attrs import define, field, frozen
from sideband import SidebandError
from sideband.plugins import PluginContext
from sideband.providers import ModelInfo, Prices, Provider, ProviderError, ProviderTimeout

from ._foreign import provider_errors
from ._model_names import ModelName

_KEPT_SECONDS = 3_600.0
# A provider that could not be asked is asked again soon, but not before each model call.
_FAILURE_KEPT_SECONDS = 60.0
_CALL_SECONDS = 5.0


@frozen
class _Known:
    models: Mapping[str, ModelInfo]
    until: float


@define(eq=False)
class ModelCatalog:
    """Knows the models of all providers. One for each host.

    Args:
        aliases: short names, each for a ``provider:model``.
        prices: those of the configuration, by ``provider:model``; they win over what a provider says.
    """

    aliases: Mapping[str, str]
    prices: Mapping[str, Prices]
    _known: dict[str, _Known] = field(factory=dict, init=False)
    _turns: dict[str, anyio.Lock] = field(factory=dict, init=False)

    async def ask(self, provider: Provider, ctx: PluginContext, *, seconds: float) -> Sequence[ModelInfo]:
        """The models of a provider, asked now.

        Args:
            provider: the provider.
            ctx: its plugin's context.
            seconds: how long it may take.

        Raises:
            SidebandError: it can't be asked; ``ProviderTimeout`` if it took too long.
        """
        name = provider.name
        with anyio.move_on_after(seconds), provider_errors(name):
            infos = tuple(await provider.models(ctx))
            if stray := next((one for one in infos if not isinstance(one, ModelInfo)), None):
                raise ProviderError(name, f"its list of models holds a {type(stray).__name__}")
            self._keep(name, infos, _KEPT_SECONDS)
            return infos
        raise ProviderTimeout(name, f"it did not list its models within {seconds:g} s", retryable=True)

    async def find(self, name: ModelName, provider: Provider, ctx: PluginContext) -> ModelInfo | None:
        """What is known about a model; ``None`` if its provider can't be asked, or doesn't know it."""
        async with self._turns.setdefault(name.provider, anyio.Lock()):
            known = self._known.get(name.provider)
            if known is None or known.until < anyio.current_time():
                try:
                    await self.ask(provider, ctx, seconds=_CALL_SECONDS)
                except SidebandError:
                    # The model call itself says what is wrong.
                    self._keep(name.provider, (), _FAILURE_KEPT_SECONDS)
            return self._known[name.provider].models.get(name.model)

    def prices_of(self, name: ModelName, info: ModelInfo | None) -> Prices | None:
        """What a model costs: as configured, else as its provider says."""
        return self.prices.get(str(name)) or (info.prices if info else None)

    def _keep(self, provider: str, infos: Sequence[ModelInfo], seconds: float) -> None:
        models = {info.id: info for info in infos}
        self._known[provider] = _Known(models, anyio.current_time() + seconds)
