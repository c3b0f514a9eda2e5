"""``sideband mcp logout``: end the authorization of a server."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from sideband.command_line import add_host_options, make_host, notice, print_data, run_async
from sideband.exit_codes import ExitCode

SUMMARY = "revoke and delete the tokens of a server"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME", help="the name of the server")
    add_host_options(parser)


def run(arguments: Namespace) -> int:
    """Revoke and delete the tokens of a server.

    Raises:
        McpError: if that fails.
    """

    async def main() -> Mapping[str, Any]:
        async with make_host(arguments) as host:
            found: Mapping[str, Any] = await host.op("mcp.logout", {"server": arguments.name})
            return found

    found = run_async(main)
    deleted = f"deleted the tokens of `{arguments.name}`" if found["deleted"] else f"`{arguments.name}` had no tokens"
    note = "; its authorization server has revoked them" if found["revoked"] else ""
    print_data(arguments, {"server": arguments.name, **found}, f"{deleted}{note}")
    if found["deleted"] and not found["revoked"]:
        notice("notice: the tokens were not revoked: end the access in your account there if it matters")
    return ExitCode.SUCCESS
