"""sideband: an agent runtime made of plugins. Skills and tools have no direct access to files, network or processes.

Names are imported on first use, so that ``import sideband`` is fast.
"""

from __future__ import annotations

from ._lazy import lazy
from ._version import __version__

# Type checkers treat this name as `typing.TYPE_CHECKING`. Importing `typing` takes longer than the rest of
# `sideband --version`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .broker import EffectReport
    from .errors import ConfigurationError, SidebandError, StoreConflict, StoreError, UsageError
    from .hooks import ToolProgress, hookimpl
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
    "Scope",
    "SidebandError",
    "StoreConflict",
    "StoreError",
    "ToolProgress",
    "UsageError",
    "__version__",
    "hookimpl",
    "op",
]

_IN_AGENT = ("Agent", "Budget", "RunResult")
_find, __dir__ = lazy(__name__, ".errors", ".ops", ".hooks", ".plugins", ".broker", ".host")


def __getattr__(name: str) -> Any:
    if name in _IN_AGENT:
        # `from sideband import …` would replace the message of an AttributeError with Python's own.
        raise ImportError(f"`{name}` is in the package `sideband-agent`: use `from sideband_agent import {name}`")
    return _find(name)
