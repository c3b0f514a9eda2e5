"""``sideband replay FILE COMMAND …``: run a command with recorded effects, without any connection or program."""

from __future__ import annotations

from argparse import Namespace

from sideband.commands import Command

from .._with_cassette import add_words, run_with_cassette

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("replay", "run a command with the effects that a file has", add_words, _run)


def _run(arguments: Namespace) -> int:
    return run_with_cassette(arguments, "replay")
