"""The guard `guard-loop`: stops a model that goes round in circles."""

from ._version import __version__

__all__ = ["__version__"]
