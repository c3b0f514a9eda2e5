"""``sideband mcp test``: connect to a server, show what it offers, and ask whether the user accepts it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, joined, make_host, notice, print_data, run_async
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

from .._catalog import tool_names
from .._source import OpenedServer, ServerSource
from ._approver import terminal_approver

if TYPE_CHECKING:
    from sideband import Host

SUMMARY = "connect to a server, show what it offers, and ask whether you accept it; exit code 3 if not"
_PLUGIN = "mcp"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME", help="the name of the server")
    add_host_options(parser)


def run(arguments: Namespace) -> int:
    """Connect to a server. The exit code is that of a refusal if the user does not accept all of it.

    Raises:
        UsageError: if there is no such server.
        McpError: if it fails.
    """

    async def main() -> Mapping[str, Any]:
        approver = terminal_approver()
        async with make_host(arguments, approver=approver) as host:
            source = await _source(host, arguments.name)
            async with source[0].open(source[1]) as server:
                return await _tested(server, can_ask=approver is not None)

    found = run_async(main)
    print_data(arguments, found, joined(_lines(found)))
    if not found["changes"] and not found["packages"]:
        return ExitCode.SUCCESS
    what = "packages, so that the server was not started" if found["packages"] else "tools"
    hint = "; to accept them, run the same command in a terminal" if terminal_approver() is None else ""
    notice(f"notice: you have not accepted these {what}{hint}")
    return ExitCode.DENIED


async def _source(host: Host, name: str) -> tuple[ServerSource, Any]:
    await host.tools.view()
    provided = [(one.source, one.context) for one in host.tools.session_sources]
    sources = {one.name: (one, context) for one, context in provided if isinstance(one, ServerSource)}
    if name not in sources:
        raise UsageError(
            f"no server `{name}` is configured and enabled{did_you_mean(name, sources)}",
            hint="run `sideband mcp list` to see all servers",
        )
    return sources[name]


async def _tested(server: OpenedServer, *, can_ask: bool) -> Mapping[str, Any]:
    listed = await server.look()
    while can_ask and await server.ask():  # first about what is installed, then about the tools
        listed = await server.look()
    accepted = {one["name"] for one in listed["tools"]}
    names, unnamed = tool_names(server.server, listed["names"])
    return {
        "server": server.server,
        "software": listed["software"],
        "protocol": listed["protocol"],
        "tools": [
            {"name": made.replace(".", "__", 1), "of_server": name, "accepted": name in accepted}
            for name, made in names.items()
        ],
        "problems": [*listed["problems"], *unnamed],
        "changes": list(listed["changes"]),
        "packages": list(listed["packages"]),
    }


def _lines(found: Mapping[str, Any]) -> list[str]:
    if found["packages"]:
        return [f"{found['server']} needs these packages:", *(f"  {one}" for one in found["packages"])]
    lines = [f"{found['server']}: {found['software'] or 'a server without a name'}, protocol {found['protocol']}"]
    lines += [f"  {one['name']}{'' if one['accepted'] else ' (not accepted)'}" for one in found["tools"]]
    lines += [] if found["tools"] else ["  no tools"]
    lines += ["problems:", *(f"  {one}" for one in found["problems"])] if found["problems"] else []
    return lines + (["changes:", *(f"  {one}" for one in found["changes"])] if found["changes"] else [])
