"""Isolates sideband's workers with operating system features, and verifies the isolation before claiming it."""

from ._sandbox import SystemSandbox
from ._version import __version__

__all__ = ["SystemSandbox", "__version__"]
