"""The entry point of the group ``sideband.v1.sandbox``."""

from __future__ import annotations

from sideband.workers import Sandbox

from ._sandbox import SeatbeltSandbox

__all__ = ["sideband_sandboxes"]


def sideband_sandboxes() -> list[Sandbox]:
    """Return the macOS sandbox."""
    return [SeatbeltSandbox()]
