"""The hook `compaction`: older messages of a long conversation are replaced by a summary."""

from ._version import __version__

__all__ = ["__version__"]
