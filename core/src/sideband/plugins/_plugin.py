"""A plugin handed over as an object, and a plugin as loaded."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from ..contexts import PluginContext
from ._records import PluginRecord

__all__ = ["LoadedPlugin", "Plugin"]


@frozen
class Plugin:
    """An inline plugin: what an entry point would name, as an object. For tests, and for programs that embed a host.

    Args:
        kind: ``op``, ``hook``, ….
        name: as the entry point would be called.
        value: the module or object.
        distribution: what to show where a distribution is shown.
        version: the same for its version.

    Example:
        >>> from types import SimpleNamespace
        >>> Plugin(kind="op", name="echo", value=SimpleNamespace(sideband_ops=lambda: ...)).name
        'echo'
    """

    kind: str
    name: str
    value: Any = field(repr=False)
    distribution: str = "inline"
    version: str = "0"


@frozen
class LoadedPlugin:
    """A plugin that was imported and found valid.

    Attributes:
        record: where it comes from and how far it is.
        value: the module or object.
        contribution: what its registration function returned: an ``OpFamily`` for an op plugin; a ``Command`` for a
            command; a class for a guard; the value itself for a hook plugin; a tuple of loaders, stores, … for the
            other kinds.
        config: its validated ``Config``, or ``None`` if it defines none.
        context: what its lifespan and its hooks get. All plugins of one module and name share one.
    """

    record: PluginRecord
    value: Any = field(repr=False)
    contribution: Any = field(repr=False)
    config: Any = field(repr=False)
    context: PluginContext = field(repr=False)

    @property
    def name(self) -> str:
        """The entry-point name."""
        return self.record.name

    @property
    def state(self) -> Any:
        """What its ``lifespan`` yielded; ``None`` without one, and before it was entered."""
        return self.context.state
