"""The ops of logins, which the command line dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband.ops import Level, OpContext, op

from .._errors import McpLoginFailed
from .._models import (
    McpAuthorizeResult,
    McpLoginParams,
    McpLoginResult,
    McpLogoutResult,
    McpServerParams,
)
from .._scope import McpScope
from ._login import origin_of

if TYPE_CHECKING:  # the SDK is slow to import
    from .._connections._servers import Servers

_SECONDS_TO_BEGIN = 120.0
_SECONDS_FOR_PERSON = 660.0


def _server(params: McpServerParams | McpLoginParams) -> McpScope:
    return McpScope(server=params.server)


@op(
    "mcp.authorize",
    requires="mcp",
    scope=_server,
    level=Level.MONITORED,
    timeout=_SECONDS_TO_BEGIN,
    record=("server",),
    internal=True,
    egress=True,
)
async def authorize(params: McpServerParams, ctx: OpContext) -> McpAuthorizeResult:
    """Begin a login to a server, and return the address that a person opens in a browser.

    Args:
        params: `server` is its name.
        ctx: the dispatch.

    Returns:
        The address.

    Raises:
        McpServerUnknown: if no server has this name.
        McpLoginFailed: if the server or its authorization server does not support a login.
    """
    servers: Servers = ctx.state
    server = servers.get(params.server)
    if server.settings.url is None:
        hint = "give it a token with `secrets` in its table, if it needs one"
        raise McpLoginFailed(params.server, "it is a program, and only servers with an address have a login", hint=hint)
    ctx.check_egress(server.origin, {"address": server.settings.url})
    pending = await servers.pending.begin(params.server, server.settings)
    return McpAuthorizeResult(
        address=pending.address,
        origin=origin_of(pending.address),
        server=server.origin or "",
        redirect=pending.redirect,
    )


@op(
    "mcp.login",
    requires="mcp",
    scope=_server,
    level=Level.CONTROLLED,
    timeout=_SECONDS_FOR_PERSON,
    record=("server",),
    internal=True,
    egress=True,
)
async def login(params: McpLoginParams, ctx: OpContext) -> McpLoginResult:
    """Wait until a person has authorized a server in a browser, and keep its tokens as secrets.

    Args:
        params: `redirect` is the address to which the browser was sent, if it cannot reach this machine.
        ctx: the dispatch.

    Returns:
        What was granted.

    Raises:
        McpLoginFailed: if the person has not authorized it.
    """
    servers: Servers = ctx.state
    found = await servers.pending.of(params.server).login(params.redirect)
    await servers.get(params.server).reopen()
    return McpLoginResult(issuer=found.issuer, scope=found.scope)


@op(
    "mcp.logout",
    requires="mcp",
    scope=_server,
    level=Level.CONTROLLED,
    record=("server",),
    internal=True,
    egress=True,
)
async def logout(params: McpServerParams, ctx: OpContext) -> McpLogoutResult:
    """Revoke the tokens of a server where that is possible, and delete them.

    Args:
        params: `server` is its name.
        ctx: the dispatch.

    Returns:
        What was deleted.

    Raises:
        McpServerUnknown: if no server has this name.
    """
    servers: Servers = ctx.state
    server = servers.get(params.server)
    await servers.pending.close(params.server)
    found = await server.access.log_out()
    await server.reopen()
    return found
