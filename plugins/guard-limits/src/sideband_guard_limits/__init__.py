"""The guard `guard-limits`: limit how many effects of each level happen within a time window."""

from ._version import __version__

__all__ = ["__version__"]
