"""The description of what plugins, skills and programs meet by name: ops, capabilities, hooks, errors and commands."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
from _pages.levels import rule_text
from _pages.packages import packages, plugin_points
from _pages.sources import named_codes
from pydantic import BaseModel, TypeAdapter
from sideband import SidebandError
from sideband.command_line._opened import add_shared_options
from sideband.command_line._parser import Parser
from sideband.commands import Command
from sideband.hooks import Failure, HookSpec
from sideband.ops import Capability, OpFamily, OpSpec, Scope
from sideband.ops._sdk_errors import BUILTINS, error_classes
from sideband.plugins._deprecations import Deprecation
from sideband.plugins._kinds import PluginKind
from sideband.tools import Tool

from .annotations import text_of
from .python import Facts
from .schemas import plain_schema
from .signatures import shown_default

__all__ = [
    "capability_facts",
    "command_facts",
    "deprecation_facts",
    "error_facts",
    "hook_facts",
    "op_facts",
    "plugin_facts",
    "setting_facts",
    "tool_facts",
]


# Defaults of an option that is absent.
_ABSENT = (None, False, SUPPRESS, [])


def op_facts(family: OpFamily) -> Facts:
    """Return the description of the ops of a family: parameters, result, and what the broker knows about them."""
    facts: Facts = {f"family:{family.name}": {"kind": "family", "errors": sorted(one.code for one in family.errors)}}
    facts |= _skill_errors(family)
    for spec in family.ops:
        path = f"op:{spec.name}"
        facts[path] = {"kind": "op", **_traits(spec)}
        facts |= _parameters(path, spec)
        result = plain_schema(spec.result_adapter.json_schema(mode="serialization"))
        facts[f"{path}()"] = {"kind": "result", "schema": result}
    return facts


def _skill_errors(family: OpFamily) -> Facts:
    """Return the description of the errors of a family as skills catch them: by the names of generated classes."""
    facts: Facts = {}
    bases: dict[str, set[str]] = {}
    for error in error_classes(family.errors):
        direct = {one.removeprefix(f"{BUILTINS}.").removeprefix("_") for one in error.bases}
        bases[error.name] = direct.union(*(bases.get(one, ()) for one in direct))
        path = f"family:{family.name}({error.name})"
        facts[path] = {"kind": "error class", "value": error.code, "bases": sorted(bases[error.name])}
        for name, annotation in error.details.items():
            facts[f"family:{family.name}({error.name}.{name})"] = {"kind": "detail", "type": annotation}
    return facts


def _traits(spec: OpSpec) -> dict[str, Any]:
    abilities = {"preview": spec.preview, "reconcile": spec.reconcile, "undo": spec.undo}
    return {
        "level": spec.level.name,
        "lower": sorted(map(rule_text, spec.lower)),
        "requires": spec.requires,
        "needs": {name: sorted(values) for name, values in sorted(spec.needs.items())},
        "idempotent": spec.idempotent,
        "fire_and_forget": spec.fire_and_forget,
        "internal": spec.internal,
        "egress": "depends" if spec.varies else "yes" if spec.leaves_machine(None, None) else "no",
        "timeout": spec.timeout,
        "abilities": sorted(name for name, function in abilities.items() if function),
        "records": sorted(spec.record),
        "redacted": not spec.reveals,
    }


def capability_facts(family: OpFamily) -> Facts:
    """Return the description of the capability of a family and of its fields."""
    path = f"capability:{family.name}"
    return {path: {"kind": "capability"}, **(_scope(path, family.scope) if family.scope is not None else {})}


def _scope(path: str, scope: type[Scope]) -> Facts:
    complete = str(Capability(scope.family).fit(scope)).partition(":")[2]
    defaults = dict(part.split("=", 1) for part in complete.split(",") if part)
    facts: Facts = {}
    for name in scope.field_names():
        fact: dict[str, Any] = {"kind": "field", "default": defaults.get(name, "any value")}
        if name in scope.valid_values:
            fact["values"] = sorted(scope.valid_values[name])
        facts[f"{path}({name})"] = fact
    return facts


def hook_facts(specs: Mapping[str, HookSpec]) -> Facts:
    """Return the description of hooks and of the fields of their events."""
    facts: Facts = {}
    for name, spec in specs.items():
        path = f"hook:{name}"
        facts[path] = {
            "kind": "hook",
            "answers": spec.kind.value,
            "failure": spec.on_failure.value,
            "deadline": spec.deadline,
            "guards_only": spec.on_failure is Failure.DENY,
            "may_return": sorted({text_of(one) for one in (*spec.may_return, *filter(None, [spec.items]))}),
        }
        for one in attrs.fields(spec.event):
            facts[f"{path}({one.name})"] = {"kind": "key", "type": text_of(one.type, spec.event.__module__)}
    return facts


def error_facts(classes: Mapping[type, str]) -> Facts:
    """Return the description of the error codes of all imported packages.

    Args:
        classes: the public names of classes.
    """
    found: dict[str, list[type[SidebandError]]] = {}
    errors = sorted(_below(SidebandError), key=lambda error: (error.__module__, error.__name__))
    named = {error.__name__: error for error in errors}
    for error in errors:
        found.setdefault(error.code, []).append(error)
    for folder in packages().values():
        for code, name in named_codes(folder):
            if name in named and code not in found:
                found[code] = [named[name]]
    return {
        f"error:{code}": {
            "kind": "error",
            "exit_codes": sorted({int(one.exit_code) for one in raised}),
            "retryable": any(one.retryable for one in raised),
            "classes": sorted({_public(one, classes) for one in raised}),
        }
        for code, raised in sorted(found.items())
    }


def _public(error: type, classes: Mapping[type, str]) -> str:
    return next(classes[one] for one in error.__mro__ if one in classes)


def _below(error: type[SidebandError]) -> set[type[SidebandError]]:
    """Return a class of errors and its subclasses in the packages of the workspace."""
    below = {error}.union(*(_below(one) for one in error.__subclasses__()))
    return {one for one in below if one.__module__.startswith("sideband") and _is_of_its_module(one)}


def _is_of_its_module(value: type) -> bool:
    """Return whether a module has a class now. A function made others, or they are those of a replaced plugin."""
    return getattr(sys.modules.get(value.__module__), value.__name__, None) is value


def setting_facts(path: str, model: type[BaseModel]) -> Facts:
    """Return the description of the keys of a table in ``sideband.toml``.

    Args:
        path: the path of the table, such as ``setting:policy``.
        model: the model of the table.
    """
    facts: Facts = {path: {"kind": "table"}}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            facts |= setting_facts(f"{path}{'' if path.endswith(':') else '.'}{name}", field.annotation)
            continue
        schema = plain_schema(TypeAdapter(field.rebuild_annotation()).json_schema())
        facts[f"{path}({name})"] = _field(schema, required=field.is_required())
        if not field.is_required():
            facts[f"{path}({name})"]["default"] = shown_default(field.get_default(call_default_factory=True))
    return facts


def plugin_facts(kinds: Mapping[str, PluginKind], other_groups: Iterable[str]) -> Facts:
    """Return the description of the groups of entry points and of the plugins in them."""
    groups = {kind.group: {"when": kind.when.value, "function": kind.function} for kind in kinds.values()}
    facts: Facts = {}
    for group, about in {**groups, **{name: {} for name in other_groups}}.items():
        facts[f"group:{group}"] = {"kind": "group", **about}
        facts |= {f"plugin:{group}/{point.name}": {"kind": "plugin"} for point in plugin_points(group)}
    return facts


def command_facts(command: Command) -> Facts:
    """Return the description of a command of the command line: its actions, arguments and options."""
    parser = Parser(add_help=False)
    command.configure(parser)
    if command.opens:
        add_shared_options(parser)
    return dict(_parser(f"command:{command.name}", parser))


def _parser(path: str, parser: ArgumentParser) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, {"kind": "command"}
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to read a parser
        if isinstance(action, _SubParsersAction):
            for name, below in action.choices.items():
                yield from _parser(f"{path}.{name}", below)
            continue
        names = action.option_strings or [str(action.metavar or action.dest)]
        is_required = action.required if action.option_strings else action.nargs not in ("?", "*", "...")
        for name in names:
            if name not in ("-h", "--help"):
                yield (
                    f"{path}({name})",
                    {
                        "kind": "option" if action.option_strings else "argument",
                        "required": bool(is_required),
                        "words": "1" if action.nargs is None else str(action.nargs),
                        **({} if action.default in _ABSENT else {"default": shown_default(action.default)}),
                        **({"values": sorted(map(str, action.choices))} if action.choices is not None else {}),
                    },
                )


def tool_facts(tool: Tool) -> Facts:
    """Return the description of a tool of a plugin, which users, policies and skills name."""
    path = f"tool:{tool.name}"
    facts: Facts = {path: {"kind": "tool", "level": tool.level.name, "timeout": tool.timeout}}
    required = tool.parameters.get("required", ())
    for name, schema in plain_schema(tool.parameters).get("properties", {}).items():
        facts[f"{path}({name})"] = _field(schema, required=name in required)
    return facts


def deprecation_facts(deprecations: Iterable[Deprecation]) -> Facts:
    """Return the description of the names that will be removed."""
    return {
        f"deprecation:{one.what}": {"kind": "deprecation", "since": one.since, "removed_in": one.removed_in}
        for one in deprecations
    }


def _parameters(path: str, spec: OpSpec) -> Facts:
    written = spec.params.model_json_schema()
    required, shown = written.get("required", ()), written.get("properties", {})
    facts: Facts = {}
    for name, schema in plain_schema(written).get("properties", {}).items():
        if name not in spec.from_host:
            facts[f"{path}({name})"] = _field(schema, required=name in required)
            if "default" in shown[name]:
                facts[f"{path}({name})"]["default"] = shown_default(shown[name]["default"])
    return facts


def _field(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {"kind": "field", "required": required, "schema": schema}
