"""The context of op families that call models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ._op import OpContext
from ._plugin import PluginContext

if TYPE_CHECKING:  # providers are called with a context, and import this package
    from ..models._providers import Provider


class ModelContext(OpContext, Protocol):
    """What a handler gets that calls models: the context of every op, and the providers.

    The host hands every handler such a context. Annotate a handler with it only where it calls a provider.
    """

    async def provider(self, name: str) -> tuple[Provider, PluginContext]:
        """The provider of models of that name, and the context that it is to be called with.

        Raises:
            PluginError: there is none, or its plugin can't be used.
        """

    async def providers(self) -> Sequence[str]:
        """The names of all providers whose plugins may load, sorted."""
