"""Plugins: finding, deciding, loading, and what a plugin is given.

Names are imported when they are first used, so that a fast start (``sideband plugins list``) can read installed
metadata without paying for the rest.
"""

# ruff: noqa: F403, F405  the modules below say what they offer, and `__all__` what of it is public

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ..contexts import *
    from ._deprecations import *
    from ._discovery import *
    from ._entry_point import *
    from ._errors import *
    from ._host import *
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

# A fast start decides about plugins with those up to `_discovery`, which import light modules alone.
__getattr__, __dir__ = lazy(
    __name__,
    "._entry_point",
    "._metadata",
    "._policy",
    "._records",
    "._discovery",
    "._deprecations",
    "..contexts",
    "._errors",
    "._plugin",
    "._host",
)
