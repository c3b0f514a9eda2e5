"""The command line of sideband, as plugins of the group ``sideband.v1.command``."""

from ._version import __version__

__all__ = ["__version__"]
