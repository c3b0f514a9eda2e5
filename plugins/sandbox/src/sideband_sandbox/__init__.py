"""Isolates sideband's workers by the operating system's own means, and proves it before it claims it."""

from ._sandbox import SystemSandbox
from ._version import __version__

__all__ = ["SystemSandbox", "__version__"]
