"""Plugins: discovery, policy decisions, loading and contexts.

Names are imported on first use, so that commands such as ``sideband plugins list`` can read installed metadata
without importing the rest.
"""

# ruff: noqa: F403, F405  `__all__` of each module lists its exports, `__all__` below the public ones

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ..contexts import *
    from ._deprecations import *
    from ._discovery import *
    from ._entry_point import *
    from ._errors import *
    from ._given_rights import *
    from ._host import *
    from ._last_start import *
    from ._metadata import *
    from ._plugin import *
    from ._policy import *
    from ._records import *

__all__ = [
    "AgentContext",
    "AgentSession",
    "ChildResult",
    "Deprecation",
    "EntryPoint",
    "LastStart",
    "LifespanFailed",
    "LoadedPlugin",
    "Plugin",
    "PluginConflict",
    "PluginContext",
    "PluginDenied",
    "PluginError",
    "PluginFileInvalid",
    "PluginHost",
    "PluginHostClosed",
    "PluginImportFailed",
    "PluginIncompatible",
    "PluginInvalid",
    "PluginMisconfigured",
    "PluginNotFound",
    "PluginPolicy",
    "PluginRecord",
    "PluginReloadFailed",
    "PluginReloadRefused",
    "PluginUntrusted",
    "SecretSource",
    "SidebandDeprecationWarning",
    "State",
    "StrictPluginError",
    "Transition",
    "discover",
    "find_entry_points",
    "list_plugins",
    "note_rights",
    "read_last_start",
]

# A fast start uses only the modules up to `_discovery`, which import nothing slow.
__getattr__, __dir__ = lazy(
    __name__,
    "._entry_point",
    "._metadata",
    "._policy",
    "._records",
    "._discovery",
    "._last_start",
    "._given_rights",
    "._deprecations",
    "..contexts",
    "._errors",
    "._plugin",
    "._host",
)
