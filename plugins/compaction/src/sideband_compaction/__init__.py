"""The hook `compaction`: replace the older messages of a long conversation by a summary."""

from ._version import __version__

__all__ = ["__version__"]
