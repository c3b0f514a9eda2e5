"""The policy about plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["PluginPolicy"]


class PluginPolicy(NamedTuple):
    """Which plugins may load, and their configuration. By default, all compatible plugins may load.

    Patterns match ``kind.name``, the name, or the distribution, with the wildcards ``*``, ``?`` and ``[…]``.

    Args:
        deny: patterns of plugins that must not load, each with a reason. These plugins are not imported.
        only: patterns of installed plugins and local files that may load; ``None`` for all. Does not apply to inline
            plugins, which the embedding program chose.
        files: the paths of local files that are plugins, by ``kind.name``. Each is loaded only if it is trusted.
        conflicts: the distribution to use if several provide a plugin: ``{"op.http": "my-http"}``.
        order: by hook, the order in which plugins run, unless other constraints apply.
        strict: whether an unusable plugin is an error at startup.
        config: the table of each plugin, by entry-point name; validated by the plugin's ``Config``.
        config_source: the file, variable or flag that each table comes from.
        only_reason: the reason of plugins that are not in ``only``.
        guards: the names of guards that must be active, or the host does not start.
        rights: the capabilities that the configuration gives to plugins for effects of their own, by ``plugin:NAME``.

    Example:
        >>> PluginPolicy(deny={"op.shell": "not on this machine"}).strict
        False
    """

    deny: Mapping[str, str] = {}
    only: frozenset[str] | None = None
    conflicts: Mapping[str, str] = {}
    order: Mapping[str, tuple[str, ...]] = {}
    strict: bool = False
    config: Mapping[str, Mapping[str, Any]] = {}
    config_source: Mapping[str, str] = {}
    only_reason: str = "it is not in the list of allowed plugins"
    rights: Mapping[str, tuple[str, ...]] = {}
    files: Mapping[str, str] = {}
    guards: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Return a representation without the configuration, which may contain secrets."""
        shown = (f"{name}={value!r}" for name, value in self._asdict().items() if name != "config")
        return f"PluginPolicy({', '.join(shown)})"
