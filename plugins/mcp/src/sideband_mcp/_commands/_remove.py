"""``sideband mcp remove``: remove a server from the settings of the user, and what the user accepted of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, make_host, print_data, run_async
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode
from sideband.grants import given_grants, revoke_grant
from sideband.ops import Capability
from sideband.state import default_home
from sideband.suggestions import did_you_mean
from sideband_settings_file import changed_settings

from .._catalog import Pins
from .._packages import ServerPackages
from ._configured import SERVERS, check_configuration

if TYPE_CHECKING:
    from sideband import Host

SUMMARY = "remove a server from your settings, and what you accepted of it"
_PLUGIN = "mcp"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME", help="the name of the server")
    add_host_options(parser)


def run(arguments: Namespace) -> int:
    """Remove a server, what the user accepted of it, and the grants for it.

    Raises:
        UsageError: if the settings of the user have no such server.
    """
    name = arguments.name
    with changed_settings(default_home()) as file:
        servers = file.get(SERVERS) or {}
        if name not in servers:
            raise UsageError(
                f"{file.path} has no server `{name}`{did_you_mean(name, servers)}",
                hint="run `sideband mcp list` to see all servers, and where each is configured",
            )
        file.remove((*SERVERS, name))
        check_configuration(file)

    async def forget() -> list[str]:
        async with make_host(arguments) as host:
            store = host.context_for(_PLUGIN).store
            await Pins(store).forget(name)
            await ServerPackages(host.home, store).forget(name)
            return await _revoke(host, name)

    revoked = run_async(forget)
    text = f"removed `{name}` from {file.path}, with what you accepted of it"
    print_data(arguments, {"server": name, "file": str(file.path), "revoked": revoked}, text)
    return ExitCode.SUCCESS


async def _revoke(host: Host, server: str) -> list[str]:
    """Revoke the grants for one server. Another one may get its name."""
    revoked: list[str] = []
    for one in await given_grants(host):
        if one.kind == "plugin" and one.subject == _PLUGIN and (found := list(_of(server, one.capabilities))):
            whole = one.scope == "session"
            await revoke_grant(host, one.id, () if whole else found, by="sideband mcp remove")
            revoked += found
    return revoked


def _of(server: str, capabilities: Iterable[str]) -> Iterable[str]:
    for text in capabilities:
        one = Capability.parse(text)
        values = dict(one.fields).get("server", ())
        if one.family == _PLUGIN and [str(value) for value in values] == [server]:
            yield text
