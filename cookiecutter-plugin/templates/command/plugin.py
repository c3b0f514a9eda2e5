"""The command: it counts the recorded effects of each op."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from sideband.commands import Command, CommandOutput

if TYPE_CHECKING:
    from sideband import Host

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("{{ cookiecutter.__entry }}", "count the effects of each op", configure, run, opens="host")


def configure(parser: ArgumentParser) -> None:
    """Add the arguments. Those of all commands with a host, such as --json, are added by sideband."""
    parser.add_argument("--last", type=count, default=1_000, metavar="NUMBER", help="count the last NUMBER effects")
    parser.add_argument("--family", help="count only the ops of this family")


def count(text: str) -> int:
    """Return a positive number."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise ArgumentTypeError(f"expected a number from 1 to 100000, got {text!r}")
    return int(text)


async def run(arguments: Namespace, host: Host) -> CommandOutput:
    """Count the effects, and return the numbers as data and as a table."""
    from sideband.ledger import query  # slow to import, and `sideband --help` imports this module

    effects = await query(host.ledger.folder, op=arguments.family, limit=arguments.last)
    found = Counter((effect.op, effect.status or "open") for effect in effects)
    rows = [{"op": op, "status": status, "effects": number} for (op, status), number in sorted(found.items())]
    lines = [f"{row['effects']:>8}  {row['status']:<10}  {row['op']}" for row in rows]
    return CommandOutput(rows, "\n".join(lines) or "no effect is recorded")
