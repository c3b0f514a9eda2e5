"""``sideband mcp login``: authorize a server in a browser."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from sideband import SidebandError
from sideband.command_line import add_host_options, make_host, notice, print_data, run_async
from sideband.exit_codes import ExitCode
from sideband.rendering import render

if TYPE_CHECKING:
    from sideband import Host

SUMMARY = "authorize a server with OAuth: print the address for a browser, and wait for you"
_MAX_BYTES = 8_192


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", metavar="NAME", help="the name of the server")
    add_host_options(parser)


def run(arguments: Namespace) -> int:
    """Print the address that authorizes a server, and wait until the person has opened it and has come back.

    Raises:
        McpError: if that fails.
    """

    async def main() -> Mapping[str, Any]:
        async with make_host(arguments) as host:
            asked = await host.op("mcp.authorize", {"server": arguments.name})
            notice(_question(arguments.name, asked))
            return await _answered(host, arguments.name)

    found = run_async(main)
    scopes = f" for the scopes {render(found['scope'])}" if found["scope"] else ""
    by = f" by {render(found['issuer'])}" if found["issuer"] else ""
    print_data(arguments, {"server": arguments.name, **found}, f"authorized `{arguments.name}`{by}{scopes}")
    return ExitCode.SUCCESS


def _question(name: str, asked: Mapping[str, str]) -> str:
    return "\n".join(
        (
            f"`{render(asked['origin'])}` asks whether `{name}` ({render(asked['server'])}) gets access in your name.",
            "Open this address in a browser:",
            "",
            render(asked["address"]),
            "",
            "If that browser cannot reach this machine, paste here the address to which it was sent at the end.",
        )
    )


async def _answered(host: Host, name: str) -> Mapping[str, Any]:
    """Return the login: of the browser, or with a pasted address, whatever is first."""
    found: dict[str, Any] = {}
    failed: list[SidebandError] = []

    async def wait() -> None:
        try:
            found.update(await host.op("mcp.login", {"server": name}))
        except SidebandError as error:
            failed.append(error)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(_paste, host, name)
    if failed:
        raise failed[0]
    return found


async def _paste(host: Host, name: str) -> None:
    """Pass on addresses that the person pastes, until one is right."""
    async for line in _lines():
        try:
            await host.op("mcp.login", {"server": name, "redirect": line})
        except SidebandError as error:
            notice(f"{error.message}; {error.hint}")


async def _lines() -> AsyncIterator[str]:
    """Yield the lines of standard input that are not empty, until its end."""
    if sys.stdin is None or sys.stdin.closed:
        return
    descriptor, buffer, ended = sys.stdin.fileno(), b"", False
    while not ended:
        # A thread could not be cancelled. The event loop refuses files and /dev/null, which are always readable.
        with suppress(PermissionError):
            await anyio.wait_readable(descriptor)
        chunk = os.read(descriptor, _MAX_BYTES)
        ended = not chunk
        *lines, buffer = (buffer + (chunk or b"\n")).split(b"\n")
        for line in lines:
            if line.strip():
                yield line.decode(errors="replace").strip()
        buffer = buffer[:_MAX_BYTES]
