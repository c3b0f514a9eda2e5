"""What the configuration says about plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["PluginPolicy"]


class PluginPolicy(NamedTuple):
    """Which plugins may load, and with what configuration. The default lets everything load that fits.

    A pattern is compared with ``kind.name``, with the name, and with the distribution; ``*``, ``?`` and ``[…]`` mean
    what they do in file names.

    Args:
        deny: patterns of plugins that must not load, each with the reason that is shown. They are not even imported.
        only: patterns of the installed plugins that may load; ``None`` for all. Inline plugins are not asked: whoever
            embeds the host chose them in code.
        conflicts: which distribution's plugin is used where several have one of that name: ``{"op.http": "my-http"}``.
        order: for each hook, plugins in the order in which they are asked, where nothing else orders them.
        strict: whether a plugin that can't be used is an error when the host starts.
        config: the table of each plugin, by entry-point name; checked by the plugin's ``Config``.
        config_source: the file, variable or flag that each table comes from.

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

    def __repr__(self) -> str:
        """Without the configuration, in which secrets may stand."""
        shown = (f"{name}={value!r}" for name, value in self._asdict().items() if name != "config")
        return f"PluginPolicy({', '.join(shown)})"
