"""What a command of the command line is: a plugin of the group ``sideband.v1.command``, named like the command."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Command"]


class Command(NamedTuple):
    """One command. ``sideband_commands()`` of the plugin returns it.

    Heavy imports belong into ``run``: the module is imported when ``sideband --help`` lists the commands.

    Attributes:
        name: the entry-point name, and the word that people type.
        summary: one line for the list of commands.
        configure: adds arguments to the command's own parser.
        run: does it and returns the exit code. A ``SidebandError`` that it raises is printed (as JSON if ``--json`` was
            given), and its ``exit_code`` is returned.

    Example:
        >>> def run(arguments):
        ...     print("hello", arguments.name)
        ...     return 0
        >>> def sideband_commands():
        ...     return Command("hello", "Greet.", lambda parser: parser.add_argument("name"), run)
    """

    name: str
    summary: str
    configure: Callable[[ArgumentParser], object]
    run: Callable[[Namespace], int]
