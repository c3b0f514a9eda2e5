"""The commands of the command line. Each is a plugin in the group ``sideband.v1.command``, named like the command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .exit_codes import ExitCode

if TYPE_CHECKING:
    from argparse import ArgumentParser

__all__ = ["Command", "CommandOutput", "problem_of"]


class CommandOutput(NamedTuple):
    """The result of a command with an open host.

    Attributes:
        data: the result, which ``--json`` prints.
        text: the text for people; by default ``data`` itself if it is a text, else ``data`` as JSON.
        exit_code: the exit code.

    Example:
        >>> CommandOutput({"skills": 2}, "2 skills").exit_code
        <ExitCode.SUCCESS: 0>
    """

    data: Any = None
    text: str | None = None
    exit_code: int = ExitCode.SUCCESS


class Command(NamedTuple):
    """One command, as ``sideband_commands()`` of its plugin returns it.

    Write its name and summary as they are into the call: ``sideband --help`` reads them from the source of the module,
    and imports none. Put slow imports into ``run``, since the module is imported for the help of the command.

    Attributes:
        name: the entry-point name, and the word that users type.
        summary: one line for the list of commands.
        configure: adds arguments to the command's own parser.
        run: executes the command with the parsed arguments and returns the exit code. If it raises a ``SidebandError``,
            the error is printed (as JSON with ``--json``) and its ``exit_code`` is used.
        opens: ``"host"`` for a command that needs a host. The command, or each of its actions, then has the options of
            sideband's own commands: ``--json``, ``--yes``, ``--set``, ``--isolation``, ``--strict`` and ``--trust``.
            ``run`` is ``async def run(arguments, host)`` with the open host, and returns the result: data, or a
            ``CommandOutput``. A termination signal or a closed pipe cancels it.

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
    run: Callable[..., Any]
    opens: Literal["", "host"] = ""


def problem_of(command: Command) -> str | None:
    """Return why a command cannot be run, or ``None``."""
    if command.opens not in ("", "host"):
        return f'`opens` of its command must be "host" or empty, got {command.opens!r}'
    if not command.opens:
        return None
    from inspect import iscoroutinefunction  # noqa: PLC0415  slow, and few commands open a host

    if not iscoroutinefunction(command.run):
        return "`run` of its command must be `async def run(arguments, host)`, because it opens a host"
    return None
