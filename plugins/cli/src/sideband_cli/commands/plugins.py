"""``sideband plugins list|why|order|check``: list plugins, and explain their states and order."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._options import add_host_options, load, make_host
from .._host._plugins import load_plugins
from .._host._running import run
from .._terminal._printing import joined, print_data
from .._terminal._tables import format_table, paragraph

if TYPE_CHECKING:
    from sideband.plugins import PluginRecord

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("plugins", "list plugins and explain their states", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all plugins and their states; import only those loaded at startup")
    listing.add_argument("--kind", help="list only this kind: op, hook, command, …")
    listing.add_argument("--state", help="list only this state: found, denied, failed, active, …")
    why = actions.add_parser("why", help="explain the state of a plugin")
    why.add_argument("name", metavar="PLUGIN", help="a plugin, as NAME or KIND.NAME")
    order = actions.add_parser("order", help="show the order in which a hook calls plugins, with the reasons")
    order.add_argument("hook", metavar="HOOK", help="the name of the hook")
    check = actions.add_parser("check", help="import and validate all plugins; exit code 5 if one is unusable")
    for action in (listing, why, order, check):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    return {"list": _list, "why": _why, "order": _order, "check": _check}[arguments.action](arguments)


def _list(arguments: Namespace) -> ExitCode:
    records = [
        record
        for record in _records(arguments)
        if arguments.kind in (None, record.kind) and arguments.state in (None, record.state.value)
    ]
    _print_records(arguments, records)
    return ExitCode.SUCCESS


def _records(arguments: Namespace) -> tuple[PluginRecord, ...]:
    """Return the records of a started host. Do not start one if that would import no plugin."""
    from sideband.plugins import discover
    from sideband.settings import default_home

    records = discover(default_home(), load(arguments).plugin_policy())
    if not any(record.kind in ("hook", "guard") and record.state.usable for record in records):
        return records

    async def main() -> tuple[PluginRecord, ...]:
        async with make_host(arguments) as host:
            return host.plugins.records

    return run(main)


def _print_records(arguments: Namespace, records: list[PluginRecord]) -> None:
    rows = [
        [
            record.kind,
            record.name,
            record.state.value,
            f"{record.distribution} {record.version}",
            "editable" if record.editable else "",
        ]
        for record in records
    ]
    table = format_table(["kind", "name", "state", "distribution", ""], rows)
    reasons = dict.fromkeys(
        paragraph(f"{record.label} is {record.state.value}: {record.reason}", hanging="  ")
        for record in records
        if record.reason
    )
    text = "\n".join([table, "", *reasons] if reasons else [table])
    print_data(arguments, [record.as_dict() for record in records], text)


def _why(arguments: Namespace) -> ExitCode:
    kind, dot, name = arguments.name.rpartition(".")

    loaded: list[str] = []

    async def main() -> list[PluginRecord]:
        from sideband.plugins import PluginError, State

        async with make_host(arguments) as host:
            found = list(host.plugins.why(name, kind=kind if dot else None))
            loaded.extend(record.label for record in found if record.state is State.FOUND)
            for record in found:
                if record.kind != "skill":
                    try:
                        await host.plugins.load(record.kind, record.name)
                    except PluginError:
                        continue  # the record contains the reason
            return found

    found = run(main)
    texts = [_explain(record, loaded=record.label in loaded) for record in found]
    print_data(arguments, [record.as_dict() for record in found], "\n\n".join(texts))
    return ExitCode.SUCCESS


def _explain(record: PluginRecord, *, loaded: bool) -> str:
    lines = [
        f"{record.label}: {record.state.value}" + (" (loaded by this command, to check it)" if loaded else ""),
        f"  package    {record.distribution} {record.version}" + (" (editable)" if record.editable else ""),
        f"  object     {record.value or '(in memory)'}",
        f"  location   {record.location or '-'}, installed by {record.installer or '?'}",
    ]
    lines += [
        f"  {'then' if number else 'first':<10} {step.state.value}"
        + (f": {step.reason}" if step.reason else "")
        + f" [{step.decided_by}]"
        for number, step in enumerate(record.trail)
    ]
    return joined(lines)


def _order(arguments: Namespace) -> ExitCode:
    async def main() -> Any:
        async with make_host(arguments) as host:
            return host.hooks.order(arguments.hook)

    ordered = run(main)
    data = [
        {"plugin": one.plugin, "phase": str(one.phase.name).lower(), "reasons": list(one.reasons)} for one in ordered
    ]
    rows = [[str(number), one["plugin"], one["phase"], "; ".join(one["reasons"])] for number, one in enumerate(data, 1)]
    print_data(
        arguments,
        data,
        format_table(["#", "plugin", "phase", "reason"], rows) if rows else "no plugin implements this hook",
    )
    return ExitCode.SUCCESS


def _check(arguments: Namespace) -> ExitCode:
    async def main() -> list[PluginRecord]:
        async with make_host(arguments) as host:
            await load_plugins(host)
            return list(host.plugins.records)

    records = run(main)
    _print_records(arguments, records)
    usable = all(record.state.usable or record.state.value == "denied" for record in records)
    return ExitCode.SUCCESS if usable else ExitCode.CONFIGURATION
