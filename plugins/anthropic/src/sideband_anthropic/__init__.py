"""The `anthropic` provider: Claude models through the Messages API."""

from ._version import __version__

__all__ = ["__version__"]
