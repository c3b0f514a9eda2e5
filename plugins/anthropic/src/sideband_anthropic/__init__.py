"""The provider `anthropic`: Claude models, over the Messages API."""

from ._version import __version__

__all__ = ["__version__"]
