"""sideband: an agent runtime made of plugins, in which no skill and no tool touches the world directly.

Names are imported when they are first used, so that ``import sideband`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__

# As type checkers know it. `typing` itself takes longer to import than `sideband --version` takes otherwise.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._errors import ConfigurationError, SidebandError, StoreConflict, StoreError, UsageError
    from ._host import CallRequest, CallResult, Host
    from .agent import Agent, Budget, RunResult
    from .broker import EffectReport, Progress
    from .hooks import hookimpl
    from .ops import Level, OpContext, OpFamily, Scope, op
    from .plugins import Plugin

__all__ = [
    "Agent",
    "Budget",
    "CallRequest",
    "CallResult",
    "ConfigurationError",
    "EffectReport",
    "Host",
    "Level",
    "OpContext",
    "OpFamily",
    "Plugin",
    "Progress",
    "RunResult",
    "Scope",
    "SidebandError",
    "StoreConflict",
    "StoreError",
    "UsageError",
    "__version__",
    "hookimpl",
    "op",
]

_HOMES = {
    "._errors": ("ConfigurationError", "SidebandError", "StoreConflict", "StoreError", "UsageError"),
    "._host": ("CallRequest", "CallResult", "Host"),
    ".agent": ("Agent", "Budget", "RunResult"),
    ".broker": ("EffectReport", "Progress"),
    ".hooks": ("hookimpl",),
    ".ops": ("Level", "OpContext", "OpFamily", "Scope", "op"),
    ".plugins": ("Plugin",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module `sideband` has no attribute `{name}`")
    value = getattr(import_module(_MODULE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
