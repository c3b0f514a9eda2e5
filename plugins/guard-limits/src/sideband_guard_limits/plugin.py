"""The entry point of the group ``sideband.v1.guard``."""

from __future__ import annotations

from ._config import Config
from ._guard import LimitGuard

__all__ = ["Config", "sideband_guards"]


def sideband_guards() -> list[type[LimitGuard]]:
    """Return the guard's class, instantiated for each agent."""
    return [LimitGuard]
