"""``sideband mcp list``: the servers, without starting any."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, joined, make_host, notice, print_data, run_async
from sideband.errors import ConfigurationError, UsageError
from sideband.exit_codes import ExitCode
from sideband.settings import LoadedSettings

from .._catalog import Pins, tool_names
from .._config import Config, ServerConfig
from ._imported import server_names

if TYPE_CHECKING:
    from sideband import Host

SUMMARY = "list the servers; none of them is started"
_PLUGIN = "mcp"
_PROJECT_FILE = ".mcp.json"
_MAX_NAMED = 10
_SERVERS = ("plugins", "mcp", "servers")


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_host_options(parser)


def run(arguments: Namespace) -> int:
    """List the servers."""

    async def main() -> list[dict[str, Any]]:
        async with make_host(arguments) as host:
            return [await _data(host, name, one) for name, one in sorted(configured(host.settings).servers.items())]

    servers = run_async(main)
    _report_project({one["name"] for one in servers})
    blocks = [joined(_lines(one)) for one in servers]
    empty = "no servers; `sideband mcp add --help` shows how to add one"
    print_data(arguments, {"servers": servers}, "\n\n".join(blocks) if blocks else empty)
    return ExitCode.SUCCESS


def _report_project(known: Collection[str]) -> None:
    """Report the servers of the project's file. They are used only once the user has added them."""
    try:
        found = server_names(Path(_PROJECT_FILE))
    except (ConfigurationError, UsageError):
        return
    if new := sorted(set(found) - set(known)):
        names = ", ".join(f"`{one}`" for one in new[:_MAX_NAMED])
        notice(f"notice: `{_PROJECT_FILE}` here has servers that are not added: {names}")
        notice(f"hint: read the file, and run `sideband mcp add --from {_PROJECT_FILE}` if you trust it")


def configured(settings: LoadedSettings) -> Config:
    """Return the table of the plugin."""
    return Config.model_validate(settings.settings.plugins.get(_PLUGIN, {}))


async def _data(host: Host, name: str, one: ServerConfig) -> dict[str, Any]:
    pin = await Pins(host.context_for(_PLUGIN).store).of(name)
    names, _ = tool_names(name, [tool.name for tool in pin.tools if one.offers(tool.name)])
    data: dict[str, Any] = {
        "name": name,
        "kind": "program" if one.command else "address",
        "source": host.settings.sources.get(_SERVERS, ""),
        "disabled": one.disabled,
        "accepted": [tool.replace(".", "__", 1) for tool in names.values()],
        "read_only": list(one.read_only),
    }
    if not one.command:
        return {**data, "url": one.url, "sse": one.sse, "local": one.local, "auth": one.auth, "headers": [*one.headers]}
    return {
        **data,
        "command": list(one.command),
        "isolation": host.settings.settings.policy.tier.label,
        "network": one.network,
        "read": list(one.read),
        "write": list(one.write),
        "folder": one.folder,
        # Values may be secrets that should be stored as such.
        "environment": [*one.environment],
        "secrets": dict(one.secrets),
    }


def _lines(one: dict[str, Any]) -> list[str]:
    state = ", disabled" if one["disabled"] else ""
    if one["kind"] == "program":
        network = "with network" if one["network"] else "no network"
        lines = [f"{one['name']}: {shlex.join(one['command'])}{state}", f"  isolation: {one['isolation']}, {network}"]
        for what in ("read", "write"):
            lines += [f"  {what}s: {path}" for path in one[what]]
        lines += [f"  folder: {one['folder']}"] if one["folder"] else []
        lines += [f"  variable {name}: set" for name in one["environment"]]
        lines += [f"  variable {name}: the secret `{handle}`" for name, handle in one["secrets"].items()]
    else:
        kind = "server-sent events" if one["sse"] else "Streamable HTTP"
        lines = [f"{one['name']}: {one['url']}{state}", f"  {kind}, {'local' if one['local'] else 'public'} addresses"]
        lines += [f"  secret: {one['auth']}"] if one["auth"] else []
        lines += [f"  headers: {', '.join(one['headers'])}"] if one["headers"] else []
    accepted = ", ".join(one["accepted"]) or f"no tools yet: run `sideband mcp test {one['name']}`"
    return [*lines, f"  accepted: {accepted}", *([f"  from {one['source']}"] if one["source"] else [])]
