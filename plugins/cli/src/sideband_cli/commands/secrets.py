"""``sideband secrets set|list|delete``: credentials, through the ops of the family `secrets`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from getpass import getpass
from typing import Any

from sideband import UsageError
from sideband.commands import Command

from .._hosting import add_host_options, make_host, run
from .._output import format_table, print_data

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("secrets", "store, list and delete credentials", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    setting = actions.add_parser("set", help="store a value, read from the terminal or from standard input")
    setting.add_argument("name")
    setting.add_argument(
        "--origin", action="append", default=[], metavar="URL", help="where it may be sent: https://api.github.com"
    )
    listing = actions.add_parser("list", help="names and origins, never values")
    delete = actions.add_parser("delete", help="forget one")
    delete.add_argument("name")
    for action in (setting, listing, delete):
        add_host_options(action)


def _run(arguments: Namespace) -> int:
    return {"set": _set, "list": _list, "delete": _delete}[arguments.action](arguments)


def _op(arguments: Namespace, name: str, params: dict[str, Any]) -> Any:
    async def main() -> Any:
        async with make_host(arguments) as host:
            return await host.op(name, params)

    return run(main)


def _set(arguments: Namespace) -> int:
    value = _ask(arguments) if sys.stdin.isatty() else sys.stdin.read().removesuffix("\n")
    if not value:
        raise UsageError(
            "the value is empty", hint="type it, or pipe it in: printf %s VALUE | sideband secrets set NAME"
        )
    output = _op(arguments, "secrets.set", {"name": arguments.name, "value": value, "origins": arguments.origin})
    origins = ", ".join(arguments.origin) or "no origin: it can be revealed, but not sent"
    print_data(arguments, output or {"name": arguments.name}, f"stored `{arguments.name}`, bound to {origins}")
    return 0


def _ask(arguments: Namespace) -> str:
    """Ask for the value, unless it is clear already that it could not be stored."""
    from pydantic import ValidationError

    async def check() -> None:
        async with make_host(arguments) as host:
            model = (await host.broker.ops.get("secrets.set")).spec.params
        try:
            model.model_validate({"name": arguments.name, "value": "x", "origins": arguments.origin})
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}"
                for one in error.errors()
            )
            raise UsageError(problems, hint="see `sideband secrets set --help`") from None

    run(check)
    try:
        return getpass(f"value of {arguments.name}: ")
    except EOFError:
        return ""


def _list(arguments: Namespace) -> int:
    output = _op(arguments, "secrets.list", {})
    rows = [[item["name"], ", ".join(item["origins"]), item["kind"], item["updated"]] for item in output["items"]]
    table = format_table(["name", "may be sent to", "kind", "stored"], rows) if rows else "no secrets are stored"
    print_data(arguments, output, f"{table}\n(kept in: {output['backend']})")
    return 0


def _delete(arguments: Namespace) -> int:
    output = _op(arguments, "secrets.delete", {"name": arguments.name})
    print_data(arguments, output if output is not None else {"name": arguments.name}, f"deleted `{arguments.name}`")
    return 0
