"""``sideband grants list|revoke``: the grants that users gave and that are remembered."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._opened import with_host
from .._terminal._columns import terminal_width
from .._terminal._grant_text import describe_grant, grant_rows
from .._terminal._questions import user_name

if TYPE_CHECKING:
    from sideband import Host
    from sideband.grants import GivenGrant

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("grants", "list and revoke the grants that you gave", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="list the remembered grants of skills, plugins, tools and effects, with who gave them, and when"
    )
    revoke = actions.add_parser("revoke", help="revoke one grant, and no other")
    revoke.add_argument("grant", metavar="ID", help="the id of the grant, or at least its first four characters")
    revoke.add_argument(
        "capability", metavar="CAPABILITY", nargs="*", help="revoke only these capabilities of a skill or a plugin"
    )
    for action in (listing, revoke):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    {"list": _list, "revoke": _revoke}[arguments.action](arguments)
    return ExitCode.SUCCESS


def _list(arguments: Namespace) -> None:
    from sideband.grants import given_grants

    found = with_host(arguments, given_grants)
    lines = [line for one in found for line in grant_rows(describe_grant(one, details=True), one, terminal_width())]
    print_data(arguments, [one.as_dict() for one in found], "\n".join(lines) if lines else "no grants")


def _revoke(arguments: Namespace) -> None:
    from sideband.grants import revoke_grant

    async def do(host: Host) -> GivenGrant:
        by = f"{user_name()} (sideband grants)"
        revoked = await revoke_grant(host, arguments.grant, arguments.capability, by=by)
        await host.sync()
        return revoked

    one = with_host(arguments, do)
    rows = grant_rows(f"revoked for {describe_grant(one)}:", one, terminal_width())
    print_data(arguments, one.as_dict(), "\n".join(rows))
