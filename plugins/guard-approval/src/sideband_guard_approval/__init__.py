"""The guard `approval`: ask a person about changes, as the approval mode of a session says."""

from ._version import __version__

__all__ = ["__version__"]
