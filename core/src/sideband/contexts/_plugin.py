"""The context that every plugin gets, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ._op import Credential

__all__ = ["OwnContext", "PluginContext"]


class PluginContext(Protocol):
    """What a ``lifespan`` and a hook implementation get.

    Attributes:
        plugin: the entry-point name.
        config: the plugin's validated ``Config``, or ``None`` if it defines none.
        state: what its ``lifespan`` yielded; ``None`` before, and without one.
        principal: on whose behalf the host runs.
        home: the host's folder for state (``SIDEBAND_HOME``). A plugin keeps its files in a folder of its own there.
    """

    @property
    def plugin(self) -> str:
        """The entry-point name."""

    @property
    def config(self) -> Any:
        """The plugin's validated ``Config``."""

    @property
    def state(self) -> Any:
        """What its ``lifespan`` yielded."""

    @property
    def principal(self) -> str:
        """On whose behalf the host runs."""

    @property
    def home(self) -> Path:
        """The host's folder for state."""

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Any:
        """Run an op as an effect of this plugin, through the broker, with at most the rights that the host gave it."""

    async def credential(self, handle: str, audience: str) -> Credential:
        """Resolve a handle for one audience, an origin such as ``https://api.github.com``."""

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Make a value known to the redactor, for the rest of the host's life."""


class OwnContext(PluginContext, Protocol):
    """The context as the plugin host has it, who sets what the ``lifespan`` yields."""

    state: Any
