"""The program ``sideband``: finds the commands of plugins, runs one, and reports its errors."""

from ._run import run

__all__ = [
    "run",
]
