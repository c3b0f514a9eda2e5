"""The ops of the family `mcp`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve
from sideband.ops import Level, Lower, OpContext, op

from ._catalog import Pin, differences
from ._config import Config, ServerConfig
from ._connections._exchange import ServerAnswer
from ._errors import McpChanged, McpToolUnknown
from ._models import (
    McpAcceptParams,
    McpAddParams,
    McpAnswerParams,
    McpCallParams,
    McpCallResult,
    McpChangesParams,
    McpInstallParams,
    McpListParams,
    McpListResult,
    McpPromptParams,
    McpPromptResult,
    McpPromptsParams,
    McpPromptsResult,
    McpReadParams,
    McpReadResult,
    McpResourcesParams,
    McpResourcesResult,
)
from ._scope import McpScope

if TYPE_CHECKING:  # the SDK is slow to import
    from ._connections._server import Server
    from ._connections._servers import Servers

_LONGEST = 86_400.0
_INSTALL_SECONDS = 1_800.0


def _server(params: McpAddParams | McpListParams | McpChangesParams) -> McpScope:
    return McpScope(server=params.server)


def _catalog(params: McpAcceptParams) -> McpScope:
    return McpScope(server=params.server, catalog=params.catalog)


def _packages(params: McpInstallParams) -> McpScope:
    return McpScope(server=params.server, packages=params.packages)


def _reading(params: McpReadParams | McpResourcesParams | McpPromptsParams | McpPromptParams) -> McpScope:
    return McpScope(server=params.server, catalog=params.catalog, access="read")


def _tool(params: McpCallParams | McpAnswerParams, config: Config) -> McpScope:
    settings = config.servers.get(params.server)
    access = "read" if settings is not None and settings.only_reads(params.tool) else "write"
    return McpScope(server=params.server, catalog=params.catalog, tool=params.tool, access=access)


@op(
    "mcp.add",
    requires="mcp",
    scope=_server,
    level=Level.MONITORED,
    record=("server", "read", "network"),
    internal=True,
    idempotent=True,
    egress=False,
)
async def add(params: McpAddParams, ctx: OpContext) -> None:
    """Add a program that a client passes as a server, until the session ends. It is not started here.

    Args:
        params: the program, which the user has accepted under this name.
        ctx: the dispatch.

    Raises:
        McpUnavailable: if another server has its name.
    """
    servers: Servers = ctx.state
    settings = ServerConfig.model_validate(params.model_dump(exclude={"server"}))
    servers.add(params.server, settings)
    ctx.on_session_end(partial(servers.remove, params.server))


@op("mcp.list", requires="mcp", scope=_server, level=Level.MONITORED, record=("server",), internal=True, egress=True)
async def list_(params: McpListParams, ctx: OpContext) -> McpListResult:
    """List the tools of a server that the user accepted, and how its offer differs from that.

    The server is started or connected to if it is not.

    Args:
        params: `server` is its name.
        ctx: the dispatch.

    Returns:
        The definitions of its tools.

    Raises:
        McpServerUnknown: if no server has this name.
        McpUnavailable: if it could not be reached.
        McpError: for its other failures.
    """
    servers: Servers = ctx.state
    server = servers.get(params.server)
    pin = await servers.pins.of(params.server)
    if (missing := await servers.packages.missing(params.server, server.settings)) is not None:
        empty = McpListResult(tools=(), accepted=pin.catalog, offered="", changes=(), problems=())
        return empty.model_copy(update={"install": missing.digest, "packages": missing.packages})
    offer = await server.offer(ctx)
    accepted = tuple(one for one in offer.tools if pin.accepts(one))
    found = differences(pin, offer)
    is_new = len(accepted) < len(found.tools) or not set(offer.features) <= set(pin.features)
    unshown = [f"`{name}` has a definition that is too long for a question" for name in found.unshown]
    return McpListResult(
        tools=accepted,
        features=tuple(one for one in offer.features if one in pin.features),
        accepted=pin.catalog,
        offered=offer.digest,
        catalog=evolve(offer, tools=found.tools).digest,
        changes=found.lines if is_new else (),
        problems=(*offer.problems, *unshown),
        names=tuple(one.name for one in offer.tools),
        software=offer.software,
        protocol=offer.protocol,
    )


@op(
    "mcp.install",
    requires="mcp",
    scope=_packages,
    level=Level.MONITORED,
    timeout=_INSTALL_SECONDS,
    record=("server", "packages", "changes"),
    internal=True,
    idempotent=True,
    egress=True,
)
async def install(params: McpInstallParams, ctx: OpContext) -> None:
    """Install exactly these packages for a server into the host's folder. No code of a package runs.

    Args:
        params: `packages` is the digest of the packages, `changes` are these packages, which the user has seen.
        ctx: the dispatch.

    Raises:
        McpInstallFailed: if it failed. Nothing is half-installed.
        McpChanged: if other packages are needed by now.
    """
    servers: Servers = ctx.state
    server = servers.get(params.server)
    missing = await servers.packages.missing(params.server, server.settings)
    if missing is None or missing.digest != params.packages or missing.packages != params.changes:
        raise McpChanged(params.server)
    await servers.packages.install(params.server, server.settings, params.packages)


@op(
    "mcp.accept",
    requires="mcp",
    scope=_catalog,
    level=Level.MONITORED,
    record=("server", "catalog", "changes"),
    internal=True,
    idempotent=True,
    egress=True,
)
async def accept(params: McpAcceptParams, ctx: OpContext) -> None:
    """Accept what a server offers. Its tools are offered to models from then on, until it changes them.

    Args:
        params: `catalog` is the digest of what is accepted then, `changes` are the differences that the user has seen.
        ctx: the dispatch.

    Raises:
        McpChanged: if the server offers something else by now.
    """
    servers: Servers = ctx.state
    offer = await servers.get(params.server).offer(ctx)
    pin = await servers.pins.of(params.server)
    found = differences(pin, offer)
    if params.catalog != evolve(offer, tools=found.tools).digest:
        raise McpChanged(params.server)
    if pin.catalog == params.catalog:  # another session has accepted it by now
        return
    if found.lines != params.changes:
        raise McpChanged(params.server)
    await servers.pins.accept(params.server, Pin(params.catalog, found.tools, tuple(offer.features)))


@op(
    "mcp.changes",
    requires="mcp",
    scope=_server,
    level=Level.SAFE,
    timeout=_LONGEST,
    record=("server",),
    internal=True,
    idempotent=True,
    egress=True,
)
async def changes(params: McpChangesParams, ctx: OpContext) -> None:
    """Wait until a server offers other tools, or the user has accepted others.

    Args:
        params: the digests of the last list.
        ctx: the dispatch.
    """
    servers: Servers = ctx.state
    await servers.get(params.server).changed(params.offered, ctx)


@op(
    "mcp.call",
    requires="mcp",
    scope=_tool,
    level=Level.RESTRICTED,
    lower=[Lower(Level.MONITORED, access=("read",))],
    timeout=_LONGEST,
    record=("server", "tool", "catalog"),
    foreign_names=True,
    egress=True,
)
async def call(params: McpCallParams, ctx: OpContext) -> McpCallResult:
    """Call a tool of a server. A call is never repeated.

    Args:
        params: `tool` is its name as the server says it, `catalog` the digest of the accepted catalog.
        ctx: the dispatch.

    Returns:
        The parts of the result.

    Raises:
        McpToolUnknown: if the user has not accepted this tool.
        McpChanged: if its definition is not the accepted one any more.
        McpInterrupted: if the connection ended during the call.
        McpTimeout: if the server did not answer in time.
        McpError: for its other failures.

    Example:
        ``{"server": "time", "tool": "get_current_time", "catalog": "…", "arguments": {"timezone": "UTC"}}``
    """
    servers: Servers = ctx.state
    server = await _accepted(params.server, params.catalog, ctx)
    pin = await servers.pins.of(params.server)
    known = next((one for one in pin.tools if one.name == params.tool), None)
    if known is None:
        raise McpToolUnknown(params.server, params.tool)
    if known not in (await server.offer(ctx)).tools:
        raise McpChanged(params.server, params.tool)
    ctx.check_egress(server.origin, {"arguments": params.model_dump_json(include={"arguments"})})
    return await server.call(params.tool, params.arguments, ctx)


@op(
    "mcp.answer",
    requires="mcp",
    scope=_tool,
    level=Level.MONITORED,
    timeout=_LONGEST,
    record=("server", "tool", "catalog", "action"),
    foreign_names=True,
    internal=True,
    egress=True,
)
async def answer(params: McpAnswerParams, ctx: OpContext) -> McpCallResult:
    """Answer what a server asked during a call, and wait for the rest of it.

    Args:
        params: `exchange` and `ask` are the ids that the call returned, `content` is the data of the answer.
        ctx: the dispatch.

    Returns:
        The result of the call, or what the server asks next.

    Raises:
        McpInterrupted: if the call has ended.
        McpError: for its other failures, as `mcp.call`.
    """
    servers: Servers = ctx.state
    server = servers.get(params.server)
    ctx.check_egress(server.origin, {"answer": params.model_dump_json(include={"content"})})
    if params.action == "abandon":
        await server.abandon(params.exchange, ctx)
        return McpCallResult(is_error=True)
    return await server.answer(params.exchange, params.ask, ServerAnswer(params.action, params.content), ctx)


@op("mcp.resources", requires="mcp", scope=_reading, level=Level.MONITORED, record=("server",), egress=True)
async def resources(params: McpResourcesParams, ctx: OpContext) -> McpResourcesResult:
    """List the resources of a server.

    Args:
        params: `catalog` is the digest of the accepted catalog.
        ctx: the dispatch.

    Returns:
        The resources, and the templates of further ones.

    Raises:
        McpError: if the server failed.
    """
    server = await _accepted(params.server, params.catalog, ctx)
    return McpResourcesResult(resources=tuple(await server.resources(ctx)))


@op("mcp.read", requires="mcp", scope=_reading, level=Level.MONITORED, record=("server", "uri"), egress=True)
async def read(params: McpReadParams, ctx: OpContext) -> McpReadResult:
    """Read a resource of a server.

    Args:
        params: `uri` is its address, as the server lists it or as one of its templates makes it.
        ctx: the dispatch.

    Returns:
        The parts of the resource.

    Raises:
        McpError: if the server failed.
    """
    server = await _accepted(params.server, params.catalog, ctx)
    ctx.check_egress(server.origin, {"address of a resource": params.uri})
    return McpReadResult(contents=tuple(await server.read(params.uri, ctx)))


@op("mcp.prompts", requires="mcp", scope=_reading, level=Level.MONITORED, record=("server",), egress=True)
async def prompts(params: McpPromptsParams, ctx: OpContext) -> McpPromptsResult:
    """List the prompts of a server.

    Args:
        params: `catalog` is the digest of the accepted catalog.
        ctx: the dispatch.

    Returns:
        The prompts.

    Raises:
        McpError: if the server failed.
    """
    server = await _accepted(params.server, params.catalog, ctx)
    return McpPromptsResult(prompts=tuple(await server.prompts(ctx)))


@op("mcp.prompt", requires="mcp", scope=_reading, level=Level.MONITORED, record=("server", "name"), egress=True)
async def prompt(params: McpPromptParams, ctx: OpContext) -> McpPromptResult:
    """Return the text of a prompt of a server.

    Args:
        params: `name` is its name, `arguments` are its arguments.
        ctx: the dispatch.

    Returns:
        The text.

    Raises:
        McpError: if the server failed.
    """
    server = await _accepted(params.server, params.catalog, ctx)
    ctx.check_egress(server.origin, {"arguments": params.model_dump_json(include={"arguments"})})
    return McpPromptResult(text=await server.prompt(params.name, params.arguments, ctx))


async def _accepted(name: str, catalog: str, ctx: OpContext) -> Server:
    """Return a server of which the user accepted this catalog.

    Raises:
        McpChanged: if the user accepted another one by now.
    """
    servers: Servers = ctx.state
    server = servers.get(name)
    if (await servers.pins.of(name)).catalog != catalog:
        raise McpChanged(name)
    return server
