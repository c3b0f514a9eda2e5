"""Run another command, whose effects are recorded in a file or answered from it."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import Path

from sideband import UsageError
from sideband.command_line import add_json_option, hosts_with, run
from sideband.suggestions import did_you_mean

from ._cassette import Cassette, Mode

_COMMANDS = ("call", "op", "run")


def add_words(parser: ArgumentParser) -> None:
    """Add the arguments: the file, and the words of the other command."""
    add_json_option(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="the cassette, such as cassettes/stars.json")
    parser.add_argument(
        "words", nargs=REMAINDER, metavar="COMMAND …", help="call, op or run, with its arguments and options"
    )


def run_with_cassette(arguments: Namespace, mode: Mode) -> int:
    """Run the command, print its output and errors, and return its exit code.

    Raises:
        UsageError: if the words are not a command that can be recorded.
    """
    words = [*arguments.words, *(["--json"] if arguments.json else [])]
    name = words[0] if words else ""
    if name not in _COMMANDS:
        problem = f"`{name}` cannot be recorded{did_you_mean(name, _COMMANDS)}" if name else "a command is missing"
        raise UsageError(problem, hint=f"write {', '.join(_COMMANDS[:-1])} or {_COMMANDS[-1]}, then its arguments")
    with hosts_with(cassette=Cassette(arguments.file, mode)):
        return run(words)
