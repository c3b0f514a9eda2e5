"""``sideband hooks list``: the hooks, what each may return, and what happens if a plugin fails."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from sideband.commands import Command

from .._hosting import add_json_option
from .._output import format_table, print_data

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("hooks", "list the hooks that plugins can implement", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_json_option(actions.add_parser("list", help="all hooks"))


def _run(arguments: Namespace) -> int:
    from sideband.hooks import HOOK_SPECS

    data: list[dict[str, Any]] = [
        {
            "name": spec.name,
            "event": spec.event.__name__,
            "kind": spec.kind.value,
            "returns": spec.returns,
            "on_failure": spec.on_failure.value,
            "deadline": spec.deadline,
            "doc": spec.doc,
        }
        for spec in HOOK_SPECS.values()
    ]
    rows = [
        [
            one["name"],
            one["kind"],
            one["returns"],
            one["on_failure"],
            f"{one['deadline']:g} s",
            one["doc"].partition("\n")[0],
        ]
        for one in data
    ]
    print_data(arguments, data, format_table(["hook", "kind", "may return", "on failure", "deadline", "when"], rows))
    return 0
