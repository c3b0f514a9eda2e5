"""Answer what a shell asks: the words that can follow."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterable
from typing import Any

from sideband import SidebandError
from sideband.command_line import command_names, command_parser

from ._words import completers

_HELP = "help"
ASKED = "_ARGCOMPLETE"
"""The variable that the script of a shell sets when it asks."""


def answer() -> None:
    """Print the completions for the line in the variable ``COMP_LINE``, and end the process."""
    from argcomplete.completers import SuppressCompleter
    from argcomplete.finders import CompletionFinder
    from argcomplete.lexers import split_line

    line, position = os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0"))
    words = split_line(line, position)[3][1:]
    name = next((word for word in words if not word.startswith("-")), "")
    CompletionFinder()(
        _parser(name, command_names()),
        always_complete_options=False,
        default_completer=SuppressCompleter(),
    )


def _parser(name: str, names: Iterable[str]) -> ArgumentParser:
    """Return a parser of all commands. Only the one in the line is imported, for its options and arguments."""
    found: dict[str, ArgumentParser] = {}
    try:
        if name in names:
            found[name] = _with_completers(name)
    except SidebandError:
        pass  # a command that cannot be used has no options

    def made(**options: Any) -> ArgumentParser:
        return found.get(options["prog"].rpartition(" ")[2]) or ArgumentParser(prog=options["prog"], add_help=False)

    root = ArgumentParser(prog="sideband")
    root.add_argument("--version", action="store_true", help="show the version")
    root.add_argument("--json", action="store_true", help=SUPPRESS)
    commands = root.add_subparsers(parser_class=made)  # type: ignore[call-overload]  # which is only called
    for one in names:
        commands.add_parser(one)
    helping = commands.add_parser(_HELP)
    helping.add_argument("command", choices=list(names))
    return root


def _with_completers(name: str) -> ArgumentParser:
    parser = command_parser(name)
    known = completers()
    for action in parser.all_actions():
        if isinstance(action.metavar, str) and action.metavar in known and not hasattr(action, "completer"):
            setattr(action, "completer", known[action.metavar])  # noqa: B010  where argcomplete looks for it
    return parser
