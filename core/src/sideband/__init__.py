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

    from .broker import EffectReport, Progress
    from .errors import ConfigurationError, SidebandError, StoreConflict, StoreError, UsageError
    from .hooks import hookimpl
    from .host import CallRequest, CallResult, Host
    from .ops import Level, OpContext, OpFamily, Scope, op
    from .plugins import Plugin

__all__ = [
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
    ".errors": ("ConfigurationError", "SidebandError", "StoreConflict", "StoreError", "UsageError"),
    ".host": ("CallRequest", "CallResult", "Host"),
    ".broker": ("EffectReport", "Progress"),
    ".hooks": ("hookimpl",),
    ".ops": ("Level", "OpContext", "OpFamily", "Scope", "op"),
    ".plugins": ("Plugin",),
}
_IN_AGENT = ("Agent", "Budget", "RunResult")
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _IN_AGENT:
        # An AttributeError would be replaced by Python's own message where `from sideband import …` asks.
        raise ImportError(f"`{name}` is in the package `sideband-agent`: use `from sideband_agent import {name}`")
    if name not in _MODULE_OF:
        raise AttributeError(f"module `sideband` has no attribute `{name}`")
    value = getattr(import_module(_MODULE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
