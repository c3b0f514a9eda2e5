"""``sideband ops list|show``: the ops of all installed families."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, make_host, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._plugins import op_families
from .._terminal._tables import first_sentence, format_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sideband.ops import Lower, OpSpec

__all__ = ["sideband_commands"]

_EGRESS = {True: "yes", False: "no", None: "not declared, so yes for guards", "parameters": "depends on the parameters"}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("ops", "list ops and show one", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all ops")
    listing.add_argument("family", nargs="?", help="list only the ops of this family")
    listing.add_argument("--all", action="store_true", help="also list internal ops, which only plugins and undo use")
    show = actions.add_parser("show", help="show an op with its parameters and result")
    show.add_argument("op", metavar="OP", help="the name of the op")
    for action in (listing, show):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    return _list(arguments) if arguments.action == "list" else _show(arguments)


def _list(arguments: Namespace) -> ExitCode:
    async def main() -> list[OpSpec]:
        async with make_host(arguments) as host:
            if arguments.family:
                families = [(await host.broker.ops.plugin(arguments.family)).contribution]
            else:
                families = await op_families(host)
        found = [spec for family in families for spec in (family.ops if arguments.all else family.public_ops)]
        return sorted(found, key=lambda spec: spec.name)

    specs = run_async(main)
    rows = [[spec.name, _level(spec), spec.requires or "-", _traits(spec), first_sentence(spec.doc)] for spec in specs]
    table = format_table(["op", "level", "requires", "traits", "description"], rows)
    print_data(arguments, [_data(spec) for spec in specs], table)
    return ExitCode.SUCCESS


def _level(spec: OpSpec) -> str:
    """Return the level, with `up to` if it depends on the grant or the parameters."""
    return f"up to {spec.level.name.lower()}" if spec.lower else spec.level.name.lower()


def _traits(spec: OpSpec) -> str:
    traits = {
        "idempotent": spec.idempotent,
        "durable": spec.durable,
        "fire-and-forget": spec.fire_and_forget,
        "internal": spec.internal,
    }
    return ", ".join(name for name, holds in traits.items() if holds)


def _show(arguments: Namespace) -> ExitCode:
    async def main() -> OpSpec:
        async with make_host(arguments) as host:
            return (await host.broker.ops.get(arguments.op)).spec

    spec = run_async(main)
    data = _data(spec)
    lines = [
        f"{spec.name}  ({_level(spec)}; {_traits(spec) or 'neither idempotent nor durable'})",
        "",
        spec.doc,
        "",
        f"requires: {_required(spec)}",
        *(f"{rule['level']} with {_values(rule['fields'])}" for rule in data["lower"]),
        f"leaves the machine: {_EGRESS[data['egress']]}",
        f"recorded: {', '.join(spec.record) or 'no parameter values'}",
        "",
        "parameters (pass them as key=value, or key:=JSON for objects and lists):",
        *_parameters(data["parameters"]),
        "",
        "result: " + json.dumps(data["result"], ensure_ascii=False, indent=2),
    ]
    print_data(arguments, data, "\n".join(lines))
    return ExitCode.SUCCESS


def _required(spec: OpSpec) -> str:
    if spec.requires is None:
        return "no capability"
    return f"{spec.requires}:{_values(spec.needs)}" if spec.needs else spec.requires


def _values(fields: Mapping[str, Sequence[str] | None]) -> str:
    """Return fields with their values as in a capability; `…` stands for any values, as long as they are listed."""
    return ",".join(f"{name}={'…' if values is None else '|'.join(values)}" for name, values in fields.items())


def _rule(rule: Lower) -> dict[str, Any]:
    fields = {name: list(allowed) if isinstance(allowed, tuple) else None for name, allowed in rule.fields}
    return {"level": rule.level.name.lower(), "fields": fields}


def _parameters(schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else f"default {json.dumps(field.get('default'))}"
        rows.append(["  " + name, _type(field), default, field.get("description", "")])
    return format_table(["  name", "type", "", "description"], rows, wrapped=True).splitlines() if rows else ["  none"]


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    return str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])


def _data(spec: OpSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "level": spec.level.name.lower(),
        "requires": spec.requires,
        "needs": {name: list(values) for name, values in spec.needs.items()},
        "lower": [_rule(rule) for rule in spec.lower],
        "idempotent": spec.idempotent,
        "durable": spec.durable,
        "fire_and_forget": spec.fire_and_forget,
        "egress": "parameters" if callable(spec.egress) else spec.egress,
        "internal": spec.internal,
        "timeout": spec.timeout,
        "recorded": list(spec.record),
        "doc": spec.doc,
        "parameters": spec.params.model_json_schema(),
        "result": spec.result_adapter.json_schema(mode="serialization"),
    }
