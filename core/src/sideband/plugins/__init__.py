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
    from ._loads import *
    from ._lock import *
    from ._locked_files import *
    from ._metadata import *
    from ._plugin import *
    from ._policy import *
    from ._records import *

__all__ = [
    "LOCK_FILE",
    "AgentContext",
    "AgentSession",
    "ChildResult",
    "Deprecation",
    "EntryPoint",
    "GuardMissing",
    "LastStart",
    "LifespanFailed",
    "LoadedPlugin",
    "Lock",
    "LockInvalid",
    "LockedPackage",
    "LockedPlugin",
    "Plugin",
    "PluginConflict",
    "PluginContext",
    "PluginDenied",
    "PluginDrifted",
    "PluginError",
    "PluginFileInvalid",
    "PluginHost",
    "PluginHostClosed",
    "PluginImportFailed",
    "PluginIncompatible",
    "PluginInvalid",
    "PluginLoad",
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
    "environment_lock",
    "find_entry_points",
    "list_plugins",
    "note_rights",
    "package_differences",
    "read_last_start",
    "read_lock",
]

# A fast start uses only the modules up to `_discovery`, which import nothing slow.
__getattr__, __dir__ = lazy(
    __name__,
    "._entry_point",
    "._metadata",
    "._policy",
    "._lock",
    "._records",
    "._discovery",
    "._last_start",
    "._given_rights",
    "._deprecations",
    "..contexts",
    "._errors",
    "._loads",
    "._plugin",
    "._host",
    "._locked_files",
)
