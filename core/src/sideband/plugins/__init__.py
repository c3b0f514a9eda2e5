"""Plugins: finding, deciding, loading, and what a plugin is given.

Names are imported when they are first used, so that a fast start (``sideband plugins list``) can read installed
metadata without paying for the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..contexts import AgentContext, AgentSession, ChildResult, PluginContext
    from ._deprecations import Deprecation, SidebandDeprecationWarning
    from ._discovery import discover
    from ._entry_point import EntryPoint
    from ._errors import (
        LifespanFailed,
        PluginConflict,
        PluginDenied,
        PluginError,
        PluginHostClosed,
        PluginImportFailed,
        PluginIncompatible,
        PluginInvalid,
        PluginMisconfigured,
        PluginNotFound,
        StrictPluginError,
    )
    from ._host import PluginHost
    from ._metadata import find_entry_points
    from ._plugin import LoadedPlugin, Plugin
    from ._policy import PluginPolicy
    from ._records import PluginRecord, State, Transition

__all__ = [
    "AgentContext",
    "AgentSession",
    "ChildResult",
    "Deprecation",
    "EntryPoint",
    "LifespanFailed",
    "LoadedPlugin",
    "Plugin",
    "PluginConflict",
    "PluginContext",
    "PluginDenied",
    "PluginError",
    "PluginHost",
    "PluginHostClosed",
    "PluginImportFailed",
    "PluginIncompatible",
    "PluginInvalid",
    "PluginMisconfigured",
    "PluginNotFound",
    "PluginPolicy",
    "PluginRecord",
    "SidebandDeprecationWarning",
    "State",
    "StrictPluginError",
    "Transition",
    "discover",
    "find_entry_points",
]

_HOMES = {
    "..contexts": ("AgentContext", "AgentSession", "ChildResult", "PluginContext"),
    "._deprecations": ("Deprecation", "SidebandDeprecationWarning"),
    "._discovery": ("discover",),
    "._entry_point": ("EntryPoint",),
    "._host": ("PluginHost",),
    "._metadata": ("find_entry_points",),
    "._plugin": ("LoadedPlugin", "Plugin"),
    "._policy": ("PluginPolicy",),
    "._records": ("PluginRecord", "State", "Transition"),
}
"""The module of each public name that is not an error."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "._errors")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
