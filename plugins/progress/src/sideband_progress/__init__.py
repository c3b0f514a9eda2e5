"""The op family `progress`: a skill says how far it is."""

from ._version import __version__

__all__ = ["__version__"]
