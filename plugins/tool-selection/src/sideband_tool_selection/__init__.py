"""The plugin `tool-selection`: send models the tools that fit the conversation."""

from ._version import __version__

__all__ = ["__version__"]
