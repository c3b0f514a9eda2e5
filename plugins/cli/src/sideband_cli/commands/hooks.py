"""``sideband hooks list``: the hooks, their results, and their failure policies."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from sideband.command_line import add_json_option, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._columns import terminal_width
from .._terminal._tables import first_sentence, format_table

__all__ = ["sideband_commands"]

_MIN_WIDTH_FOR_ALL = 140


def sideband_commands() -> Command:
    """Register the command."""
    return Command("hooks", "list the hooks that plugins can implement", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_json_option(actions.add_parser("list", help="list all hooks"))


def _run(arguments: Namespace) -> ExitCode:
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
    print_data(arguments, data, _table(data))
    return ExitCode.SUCCESS


def _table(hooks: list[dict[str, Any]]) -> str:
    """Format hooks as a table, without the columns that do not fit; ``--json`` has all."""
    columns = {"hook": "name", "kind": "kind"}
    if terminal_width() >= _MIN_WIDTH_FOR_ALL:
        columns |= {"may return": "returns", "on failure": "on_failure"}
    rows = [
        [*(hook[field] for field in columns.values()), f"{hook['deadline']:g} s", first_sentence(hook["doc"])]
        for hook in hooks
    ]
    return format_table([*columns, "deadline", "when"], rows, wrapped=True)
