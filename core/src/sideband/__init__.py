"""sideband: an agent runtime made of plugins, in which no skill and no tool touches the world directly.

Names are imported when they are first used, so that ``import sideband`` costs nothing.
"""

from __future__ import annotations

from ._lazy import lazy
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

_IN_AGENT = ("Agent", "Budget", "RunResult")
_find, __dir__ = lazy(__name__, ".errors", ".ops", ".hooks", ".plugins", ".broker", ".host")


def __getattr__(name: str) -> Any:
    if name in _IN_AGENT:
        # An AttributeError would be replaced by Python's own message where `from sideband import …` asks.
        raise ImportError(f"`{name}` is in the package `sideband-agent`: use `from sideband_agent import {name}`")
    return _find(name)
