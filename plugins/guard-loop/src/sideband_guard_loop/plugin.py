"""The entry point of the group ``sideband.v1.guard``."""

from __future__ import annotations

from ._config import Config
from ._guard import LoopGuard

__all__ = ["Config", "sideband_guards"]


def sideband_guards() -> list[type[LoopGuard]]:
    """The guard's class, of which each agent has an instance of its own."""
    return [LoopGuard]
