"""The `openai` provider: OpenAI's service and compatible ones."""

from ._version import __version__

__all__ = ["__version__"]
