"""The entry point of the group ``sideband.v1.sandbox``."""

from __future__ import annotations

import sys

from sideband.workers import Sandbox

from ._sandbox import SystemSandbox
from ._seatbelt_sandbox import SeatbeltSandbox

__all__ = ["sideband_sandboxes"]


def sideband_sandboxes() -> list[Sandbox]:
    """The sandbox of this operating system."""
    return [SeatbeltSandbox() if sys.platform == "darwin" else SystemSandbox()]
