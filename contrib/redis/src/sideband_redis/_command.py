"""``sideband events``: print what all hosts publish."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from sideband import Host
from sideband.commands import Command, CommandOutput


def sideband_commands() -> Command:
    """Register the command."""
    return Command("events", "print what all hosts that share a server publish", _configure, _run, opens="host")


def _configure(parser: ArgumentParser) -> None:
    parser.description = "Print one line of JSON for each event, until it is interrupted."


async def _run(arguments: Namespace, host: Host) -> CommandOutput:  # noqa: ARG001  it has no arguments
    from ._following import follow_events  # noqa: PLC0415  slow, and not needed for the help

    plugin = await host.plugins.load("hook", "redis")
    interruptions = 0
    async with follow_events(plugin.config) as events:
        async for one in events:
            if events.interruptions > interruptions:
                interruptions = events.interruptions
                sys.stderr.write("note: the connection broke, so events may be missing before the next line\n")
                sys.stderr.flush()
            # Any user of the server can publish, so control characters of the terminal are escaped.
            sys.stdout.write(json.dumps(one.model_dump(mode="json", exclude_defaults=True)) + "\n")
            sys.stdout.flush()
    return CommandOutput()
