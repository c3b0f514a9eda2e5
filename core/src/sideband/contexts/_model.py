"""The context of op families that call models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ._op import OpContext
from ._plugin import PluginContext

if TYPE_CHECKING:  # `models` imports this package
    from ..models._providers import Provider


class ModelContext(OpContext, Protocol):
    """The context of handlers that call models: an op context with access to model providers.

    The host passes this context to every handler. Use it as an annotation only if the handler calls a provider.
    """

    async def provider(self, name: str) -> tuple[Provider, PluginContext]:
        """Return a model provider by name, and the context to call it with.

        Raises:
            PluginError: if the provider is unknown or its plugin is unavailable.
        """

    async def providers(self) -> Sequence[str]:
        """Return the names of all providers whose plugins may load, sorted."""
