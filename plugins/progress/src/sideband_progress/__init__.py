"""The op family `progress`: skills report their progress."""

from ._version import __version__

__all__ = ["__version__"]
