"""The guard `guard-loop`: stop models that repeat the same calls."""

from ._version import __version__

__all__ = ["__version__"]
