"""Sessions in pi's format, for `sideband sessions import` and `sideband sessions export --format pi`."""

from ._pi_format import PI_VERSION, PiFormat
from ._version import __version__

__all__ = ["PI", "PI_VERSION", "PiFormat", "__version__"]

PI = PiFormat()
"""The object that the entry point names."""
