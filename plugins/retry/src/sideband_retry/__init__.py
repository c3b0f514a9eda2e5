"""The plugin `retry`: what a failed model call means, and when to make it again."""

from ._version import __version__

__all__ = ["__version__"]
