"""The context of plugins."""

from __future__ import annotations

from typing import Any, Protocol

from ._op import EffectContext


class PluginContext(EffectContext, Protocol):
    """The context of a plugin's ``lifespan`` and hook implementations.

    Ops that it dispatches are effects of the plugin. Its rights are those that the host granted to the plugin.

    Attributes:
        plugin: the entry-point name.
        config: the plugin's validated ``Config``, or ``None`` if it does not define one.
        state: the value that its ``lifespan`` yielded; ``None`` before that, or without a ``lifespan``.
        principal: the principal on whose behalf the host runs.
        home: the host's state folder (``SIDEBAND_HOME``), in which each plugin uses its own subfolder.
    """

    @property
    def plugin(self) -> str:
        """The entry-point name."""


class OwnContext(PluginContext, Protocol):
    """The context as used by the plugin host, which sets ``state`` to the value that the ``lifespan`` yields."""

    state: Any
