"""Isolates sideband's workers on macOS with seatbelt profiles. Its authors have never run it there."""

from ._sandbox import SeatbeltSandbox
from ._version import __version__

__all__ = ["SeatbeltSandbox", "__version__"]
