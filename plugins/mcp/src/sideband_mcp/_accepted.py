"""The rights to what the user accepted of a server."""

from __future__ import annotations

from attrs import frozen
from sideband.plugins import PluginContext

from ._errors import McpNotOffered


@frozen
class AcceptedServer:
    """The rights to what the user accepted of a server.

    Attributes:
        catalog: the digest of what was accepted.
        uses: the capabilities, for ``ctx.dispatch``.
    """

    catalog: str
    uses: list[str]


async def accepted(server: str, feature: str, ctx: PluginContext) -> AcceptedServer:
    """Return the rights to what the user accepted of a server.

    Raises:
        McpNotOffered: if the server does not offer this feature, or the user has not accepted it.
    """
    listed = await ctx.dispatch("mcp.list", {"server": server})
    if feature not in listed["features"]:
        raise McpNotOffered(server, feature)
    return AcceptedServer(listed["accepted"], [right_of(server, listed["accepted"])])


def right_of(server: str, catalog: str) -> str:
    """Return the capability to use what the user accepted of a server."""
    return f"mcp:server={server},catalog={catalog}"
