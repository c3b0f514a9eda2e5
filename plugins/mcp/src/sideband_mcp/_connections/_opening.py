"""Open the transport of a server for an op."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from mcp.client._transport import TransportStreams
from sideband.ops import OpContext
from sideband.plugins import PluginContext
from sideband.workers import IsolationUnavailable, Place, ProgramRequest, WorkerStartFailed

from .._config import Config, ServerConfig
from .._errors import McpUnavailable
from .._oauth._access import Access
from .._oauth._bearer import BearerAuth, OtherAuth
from .._packages import InstalledProgram, ServerPackages
from .._transports import http_transport, program_transport
from .._transports._failure import ConnectionFailure
from ._connection import Opener

_PATH = os.defpath
_TEMPORARY = Path("/tmp")  # noqa: S108  the program's own, not that of the machine


def program_origin(server: str) -> str:
    """Return the origin that a secret must be bound to for a server that is a program to get it.

    Example:
        >>> program_origin("github")
        'op://mcp.github'
    """
    return f"op://mcp.{server}"


async def opener_of(
    server: str, one: ServerConfig, config: Config, ctx: OpContext, *, own: PluginContext, access: Access
) -> Opener:
    """Return a function that opens the transport. For a program, it is started here.

    Args:
        server: the name of the server.
        one: its table.
        config: the limits of connections.
        ctx: the context of the op that needs it.
        own: the context of the plugin, which resolves secrets: the user bound them to the server, and a call that
            opens a connection again has only the rights for the call.
        access: the token of the server, if a person authorizes it.
    """
    if one.command:
        return await _start(server, one, config, ctx, own)
    return await _address(server, one, config, ctx, own=own, access=access)


async def _start(server: str, one: ServerConfig, config: Config, ctx: OpContext, own: PluginContext) -> Opener:
    secrets = {
        name: (await own.credential(handle, program_origin(server))).value for name, handle in one.secrets.items()
    }
    installed = await ServerPackages(own.home, own.store).program(server, one)
    request = _program(server, one, ctx, secrets, installed)
    ctx.check_egress(None, {f"argument {number}": text for number, text in enumerate(one.command)})
    try:
        process = await ctx.launch(request)
    except IsolationUnavailable as error:
        raise McpUnavailable(server, error.message, hint=error.hint) from error
    except WorkerStartFailed as error:
        hint = f"if it is not a program of the system, add its folder to `[plugins.mcp.servers.{server}] read`"
        raise McpUnavailable(server, error.message, hint=error.hint or hint) from error

    def opened(failure: ConnectionFailure) -> AbstractAsyncContextManager[TransportStreams]:
        return program_transport(
            process,
            server,
            failure=failure,
            max_message_bytes=config.max_message_bytes,
            close_seconds=config.close_seconds / 2,
        )

    return opened


def _program(
    server: str, one: ServerConfig, ctx: OpContext, secrets: Mapping[str, str], installed: InstalledProgram | None
) -> ProgramRequest:
    path = os.environ.get("PATH", _PATH)
    command = one.command if installed is None else installed.command
    found = shutil.which(command[0], path=path)
    if found is None:
        raise McpUnavailable(
            server,
            f"its program `{command[0]}` is not installed",
            hint=f"install it, or write its absolute path in `[plugins.mcp.servers.{server}] command`",
        )
    places = [
        *(Place(path) for path in (() if installed is None else installed.places)),
        *(_place(server, text, ctx) for text in one.read),
        *(_place(server, text, ctx, True) for text in one.write),
    ]
    return ProgramRequest(
        arguments=(str(Path(found).absolute()), *command[1:]),
        folder=_TEMPORARY if one.folder is None else _real(one.folder),
        environment={"PATH": path, "LANG": "C.UTF-8", **one.environment, **secrets},
        places=tuple(places),
        network=one.network,
    )


def _place(server: str, text: str, ctx: OpContext, writable: bool = False) -> Place:
    path = _real(text)
    home = Path(os.path.realpath(ctx.home))
    if path.is_relative_to(home) or home.is_relative_to(path):
        raise McpUnavailable(server, f"its place `{text}` overlaps the host's own folder", hint="name another folder")
    if not path.exists():
        raise McpUnavailable(server, f"its place `{text}` does not exist", hint="create it, or correct the path")
    return Place(path, writable)


def _real(text: str) -> Path:
    return Path(os.path.realpath(Path(text).expanduser()))


async def _address(
    server: str, one: ServerConfig, config: Config, ctx: OpContext, *, own: PluginContext, access: Access
) -> Opener:
    url, origin = one.url or "", one.origin or ""
    headers = dict(one.headers)
    ctx.check_egress(origin, {"address": url, **{f"header `{name}`": value for name, value in headers.items()}})
    if one.auth is not None:
        credential = await own.credential(one.auth, origin)
        headers |= credential.headers or {"Authorization": f"Bearer {credential.value}"}

    if one.oauth:
        await access.open()

    def opened(failure: ConnectionFailure) -> AbstractAsyncContextManager[TransportStreams]:
        return http_transport(
            url,
            server,
            headers=headers,
            sse=one.sse,
            local=one.local,
            failure=failure,
            max_message_bytes=config.max_message_bytes,
            auth=BearerAuth(access, failure) if one.oauth else OtherAuth(server, failure),
        )

    return opened
