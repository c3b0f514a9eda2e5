"""The command ``sideband``. ``--version`` is answered here, before anything else is imported."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: the arguments without the program's name; those of the process if ``None``.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"]:
        from ._version import __version__

        print(f"sideband {__version__}")  # also where standard output is closed
        return 0
    from .command_line import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
