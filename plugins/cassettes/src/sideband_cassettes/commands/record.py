"""``sideband record FILE COMMAND …``: run a command and record its effects, to replay them without a network."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sideband.command_line import notice
from sideband.commands import Command

from .._errors import CassetteInvalid
from .._file import read_cassette
from .._with_cassette import add_words, run_with_cassette

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("record", "run a command and record its effects in a file", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--missing", action="store_true", help="replay what the file has, and record only the effects that it lacks"
    )
    add_words(parser)


def _run(arguments: Namespace) -> int:
    code = run_with_cassette(arguments, "missing" if arguments.missing else "record")
    try:
        count = len(read_cassette(arguments.file).effects)
    except CassetteInvalid:
        return code  # the command failed before anything could be recorded, and has said why
    notice(f"{arguments.file} has {count} effect{'s' if count != 1 else ''}")
    return code
