"""Inline plugins and loaded plugins."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from ..contexts import PluginContext
from ..suggestions import did_you_mean
from ._kinds import KINDS
from ._records import PluginRecord

__all__ = ["LoadedPlugin", "Plugin"]


@frozen
class Plugin:
    """An inline plugin: an object instead of an entry point, for tests and programs that embed a host.

    Args:
        kind: the kind, such as ``op`` or ``hook``.
        name: the name, corresponding to an entry-point name.
        value: the module or object.
        distribution: the distribution to show in messages and lists.
        version: the version to show in messages and lists.

    Raises:
        ValueError: if the kind is unknown.

    Example:
        >>> from types import SimpleNamespace
        >>> Plugin(kind="op", name="echo", value=SimpleNamespace(sideband_ops=lambda: ...)).name
        'echo'
    """

    kind: str = field()
    name: str
    value: Any = field(repr=False)
    distribution: str = "inline"
    version: str = "0"

    @kind.validator
    def _check_kind(self, _attribute: object, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of plugin {kind!r}{did_you_mean(str(kind), KINDS)}")


@frozen
class LoadedPlugin:
    """A plugin that was imported and validated.

    Attributes:
        record: its source and state.
        value: the module or object.
        contribution: the result of its registration function: an ``OpFamily`` for an op plugin; a ``Command`` for a
            command; a class for a guard; the value itself for a hook plugin; a tuple of loaders, stores, … for other
            kinds.
        config: its validated ``Config``, or ``None`` if it does not define one.
        context: the context of its lifespan and hooks, shared by all plugins of one module and name.
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
        """The value that its ``lifespan`` yielded; ``None`` before that, or without a ``lifespan``."""
        return self.context.state
