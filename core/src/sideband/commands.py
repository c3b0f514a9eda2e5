"""The commands of the command line. Each is a plugin in the group ``sideband.v1.command``, named like the command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["Command"]


class Command(NamedTuple):
    """One command, as ``sideband_commands()`` of its plugin returns it.

    Put slow imports into ``run``: ``sideband --help`` imports the module of every command.

    Attributes:
        name: the entry-point name, and the word that users type.
        summary: one line for the list of commands.
        configure: adds arguments to the command's own parser.
        run: executes the command and returns the exit code. If it raises a ``SidebandError``, the error is printed (as
            JSON with ``--json``) and its ``exit_code`` is used.

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
