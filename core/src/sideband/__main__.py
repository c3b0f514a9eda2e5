"""The entry point of the command ``sideband``. It handles ``--version`` itself, without importing anything else."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: the arguments without the program's name, or ``None`` for ``sys.argv``.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if os.getpid() == 1:
        from ._first_process import continue_in_child

        continue_in_child()
    if arguments == ["--version"]:
        from ._version import __version__

        print(f"sideband {__version__}")  # `print` also works if standard output is closed
        return 0
    from .command_line import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
