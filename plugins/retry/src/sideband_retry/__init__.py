"""The plugin `retry`: classify failed model calls and decide when to retry them."""

from ._version import __version__

__all__ = ["__version__"]
