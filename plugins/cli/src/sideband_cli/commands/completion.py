"""``sideband completion SHELL``: print the script that completes commands in a shell."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from sideband import UsageError
from sideband.commands import Command
from sideband.exit_codes import ExitCode

__all__ = ["sideband_commands"]

_SHELLS = ("bash", "zsh", "fish")


def sideband_commands() -> Command:
    """Register the command."""
    return Command("completion", "print a script that completes commands in a shell", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=_SHELLS, help="bash, zsh or fish")


def _run(arguments: Namespace) -> ExitCode:
    if arguments.shell is None:
        from .._completion._answers import ASKED, answer

        if ASKED not in os.environ:
            raise UsageError("which shell?", hint=f"name one of {', '.join(_SHELLS)}: sideband completion bash")
        answer()
        return ExitCode.SUCCESS
    from .._completion._scripts import script_for

    sys.stdout.write(script_for(arguments.shell))
    return ExitCode.SUCCESS
