"""The kinds of plugins: when each is imported, and the name of its registration function."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

API = 1
"""The version of the plugin API, as in ``sideband.v1.op``."""


class When(Enum):
    """When a plugin of a kind is imported."""

    START = "at start"
    FIRST_USE = "at first use"
    NEVER = "never: located only"


class PluginKind(NamedTuple):
    """One kind of plugin.

    Attributes:
        name: the last part of the entry-point group, such as ``op`` in ``sideband.v1.op``.
        when: when plugins of this kind are imported.
        function: the name of the registration function. That of a hook plugin is optional.
    """

    name: str
    when: When
    function: str = ""

    @property
    def group(self) -> str:
        """The entry-point group."""
        return f"sideband.v{API}.{self.name}"


KINDS = {
    kind.name: kind
    for kind in (
        PluginKind("guard", When.START, "sideband_guards"),
        PluginKind("hook", When.START, "sideband_hooks"),
        PluginKind("op", When.FIRST_USE, "sideband_ops"),
        PluginKind("secrets", When.FIRST_USE, "sideband_secret_sources"),
        PluginKind("provider", When.FIRST_USE, "sideband_providers"),
        PluginKind("loader", When.FIRST_USE, "sideband_loaders"),
        PluginKind("store", When.FIRST_USE, "sideband_stores"),
        PluginKind("sandbox", When.FIRST_USE, "sideband_sandboxes"),
        PluginKind("command", When.FIRST_USE, "sideband_commands"),
        PluginKind("tool", When.FIRST_USE, "sideband_tools"),
        PluginKind("skill", When.NEVER),
    )
}
"""All kinds by name. Guards come first, because they are loaded before hooks."""
