"""The command ``sideband``: finds the commands of plugins, runs one, and reports how it ended."""

from ._run import run

__all__ = [
    "run",
]
