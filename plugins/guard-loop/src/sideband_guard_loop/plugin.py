"""The entry point of the group ``sideband.v1.guard``."""

from __future__ import annotations

from ._config import Config
from ._guard import LoopGuard

__all__ = ["Config", "sideband_guards"]


def sideband_guards() -> list[type[LoopGuard]]:
    """Return the guard's class, instantiated for each agent."""
    return [LoopGuard]
