"""``sideband auth login|logout|list``: the keys of the services that provide models."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.command_line import add_host_options, load_options, notice, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._opened import with_host
from .._terminal._tables import format_table

if TYPE_CHECKING:
    from sideband import Host

    from .._setup._services import Service
    from .._setup._survey import FoundServices

__all__ = ["sideband_commands"]

_MAX_BYTES = 100_000


def sideband_commands() -> Command:
    """Register the command."""
    return Command("auth", "store, delete and list the keys of model providers", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    login = actions.add_parser("login", help="store the key of a provider, from a hidden prompt or standard input")
    logout = actions.add_parser("logout", help="delete the stored key of a provider")
    listing = actions.add_parser("list", help="list the providers, where the key of each is, and whether it works")
    for action in (login, logout):
        action.add_argument("provider", metavar="PROVIDER", help="the provider, such as openai or anthropic")
    for action in (login, logout, listing):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    {"login": _login, "logout": _logout, "list": _list}[arguments.action](arguments)
    return ExitCode.SUCCESS


def _login(arguments: Namespace) -> None:
    from .._dialogs._questions import has_terminal, secret
    from .._setup._keys import store_key
    from .._setup._survey import counted

    service = _service(arguments)
    if sys.stdin.isatty():
        value = secret(f"Key of {service.title}, which is not shown").strip() if has_terminal() else ""
    else:
        value = sys.stdin.buffer.read(_MAX_BYTES).decode(errors="replace").strip()
    if not value:
        hint = f"type the key, or pipe it: printf %s KEY | sideband auth login {service.provider}"
        raise UsageError("the key is empty", hint=hint)
    found = store_key(arguments, service, value)
    data = {"provider": service.provider, "secret": service.secret, "models": len(found.models)}
    lines = [f"stored the key of {service.title} as the secret `{service.secret}`, bound to {service.origin}"]
    if found.problem:
        notice(f"notice: the key could not be tried: {found.problem}")
    else:
        lines.append(f"it works: {counted(found.models)}; run `sideband init` to choose one")
    print_data(arguments, data, "\n".join(lines))


def _logout(arguments: Namespace) -> None:
    service = _service(arguments)

    async def do(host: Host) -> bool:
        stored = {one["name"] for one in (await host.op("secrets.list", {}))["items"]}
        if service.secret in stored:
            await host.op("secrets.delete", {"name": service.secret})
        return service.secret in stored

    deleted = with_host(arguments, do)
    text = f"deleted the key of {service.title}" if deleted else f"no key of {service.title} is stored"
    if service.variable:
        notice(f"notice: the variable {service.variable} has a key, which is used from now on")
    print_data(arguments, {"provider": service.provider, "deleted": deleted, "variable": service.variable}, text)


def _list(arguments: Namespace) -> None:
    from .._setup._services import services_of
    from .._setup._survey import survey

    found = survey(arguments, services_of(load_options(arguments, tolerant=True).settings.plugins))
    rows = [_row(one.service, found) for one in found.services.values() if one.is_known]
    columns = ["provider", "key", "state"]
    table = format_table(columns, [[row[column] for column in columns] for row in rows], wrapped=True)
    print_data(arguments, rows, table)


def _row(service: Service, found: FoundServices) -> dict[str, Any]:
    from .._setup._survey import counted

    surveyed = found.services[service.provider]
    if service.secret and service.secret in found.stored:
        key = f"the secret `{service.secret}`"
    elif service.variable:
        key = f"the variable {service.variable}"
    else:
        key = "not needed" if service.is_local else "none"
    if surveyed.models:
        state = f"works, {counted(surveyed.models)}"
    elif service.is_local:
        state = surveyed.problem or "not running"
    else:
        state = f"log in: sideband auth login {service.provider}" if key == "none" else surveyed.problem
    return {"provider": service.provider, "key": key, "state": state, "models": len(surveyed.models)}


def _service(arguments: Namespace) -> Service:
    from .._setup._services import service_named

    return service_named(arguments.provider, load_options(arguments, tolerant=True).settings.plugins)
