"""The entry points: the guard `approval` and the tool `plan`."""

from __future__ import annotations

from ._config import Config
from ._guard import ApprovalGuard
from ._plan_tool import plan

__all__ = ["Config", "plan", "sideband_guards"]


def sideband_guards() -> list[type[ApprovalGuard]]:
    """Return the guard's class, instantiated for each agent."""
    return [ApprovalGuard]
