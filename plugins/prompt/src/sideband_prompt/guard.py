"""The entry point of the group ``sideband.v1.guard``. It has no settings, so none can make it unusable."""

from __future__ import annotations

from ._commands._guard import CommandGuard

__all__ = ["sideband_guards"]


def sideband_guards() -> list[type[CommandGuard]]:
    """Return the guard's class, instantiated for each agent."""
    return [CommandGuard]
