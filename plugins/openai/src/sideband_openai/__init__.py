"""The provider `openai`: models behind OpenAI's service, and behind all that speak like it."""

from ._version import __version__

__all__ = ["__version__"]
