"""Sessions in the format of pi: `sideband sessions import` and `export --format pi` find it when it is installed."""

from ._pi_format import PI_VERSION, PiFormat
from ._version import __version__

__all__ = ["PI", "PI_VERSION", "PiFormat", "__version__"]

PI = PiFormat()
"""What the entry point names."""
