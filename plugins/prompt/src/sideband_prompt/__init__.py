"""The system prompt: instructions, memory, knowledge and skills, as ordered sections."""

from ._version import __version__

__all__ = ["__version__"]
