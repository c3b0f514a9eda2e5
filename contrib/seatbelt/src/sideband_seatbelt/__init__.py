"""Isolates sideband's workers on macOS by a seatbelt profile. Never run there by its authors."""

from ._sandbox import SeatbeltSandbox
from ._version import __version__

__all__ = ["SeatbeltSandbox", "__version__"]
