"""The context that every plugin gets, whatever its kind."""

from __future__ import annotations

from typing import Any, Protocol

from ._op import EffectContext


class PluginContext(EffectContext, Protocol):
    """What a ``lifespan`` and a hook implementation get.

    What it dispatches are effects of the plugin. Its rights are those that the host gave the plugin.

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


class OwnContext(PluginContext, Protocol):
    """The context as the plugin host has it, who sets what the ``lifespan`` yields."""

    state: Any
