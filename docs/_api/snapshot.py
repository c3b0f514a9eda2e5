"""The description of the whole API: collected from the installed packages, and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from _pages.capabilities import families
from _pages.events import DELTAS, MESSAGES, NOT_PRINTED, PARTS
from _pages.packages import modules, packages, plugin_points
from _pages.settings import plugin_configs
from _pages.wire import EXAMPLES, FAILED, HOST, is_required
from attrs import frozen
from sideband import __version__
from sideband.commands import Command
from sideband.hooks import HOOK_SPECS
from sideband.ledger import Intent, Outcome
from sideband.messages import Usage
from sideband.plugins._deprecations import DEPRECATIONS
from sideband.plugins._kinds import KINDS
from sideband.settings import Settings
from sideband.tools import Tool
from sideband.workers.runtime import PROTOCOL
from sideband_agent import RunResult
from sideband_agent.sessions import Entry
from sideband_agent.sessions._format import SessionHeader

from .contract import (
    capability_facts,
    command_facts,
    deprecation_facts,
    error_facts,
    hook_facts,
    op_facts,
    plugin_facts,
    setting_facts,
    tool_facts,
)
from .formats import model_facts, record_facts, wire_facts
from .properties import DEFAULTS
from .python import Facts, names_of, python_facts

__all__ = ["Snapshot", "current", "read", "write"]

_OTHER_GROUPS = ("sideband_agent.session_formats",)


@frozen
class Snapshot:
    """The description of the API of one version.

    Attributes:
        version: the version.
        facts: the descriptions by path.
    """

    version: str
    facts: Facts


def current() -> Snapshot:
    """Return the description of the API of the installed packages."""
    public = [*_public_modules(), *_sdk_modules()]
    classes = {value: name for name, value in reversed(names_of(public).items()) if isinstance(value, type)}
    facts = python_facts(public)
    for family in families():
        facts |= op_facts(family) | capability_facts(family)
    facts |= hook_facts(HOOK_SPECS) | error_facts(classes) | deprecation_facts(DEPRECATIONS)
    facts |= plugin_facts(KINDS, _OTHER_GROUPS) | _settings() | _commands() | _tools() | _formats()
    return Snapshot(__version__, {path: _without_defaults(facts[path]) for path in sorted(facts)})


def read(path: Path) -> Snapshot:
    """Return the description in a file."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return Snapshot(stored["version"], stored["facts"])


def write(path: Path, snapshot: Snapshot) -> None:
    """Write a description to a file, each part on its own line."""
    lines = [f"{json.dumps(name)}: {_line(fact)}" for name, fact in sorted(snapshot.facts.items())]
    text = ",\n".join(lines)
    path.write_text(f'{{"version": {json.dumps(snapshot.version)}, "facts": {{\n{text}\n}}}}\n', encoding="utf-8")


def _line(fact: Mapping[str, object]) -> str:
    return json.dumps(fact, ensure_ascii=False)


def _without_defaults(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fact.items() if name not in DEFAULTS or value != DEFAULTS[name]}


def _public_modules() -> Iterator[ModuleType]:
    """Yield the modules without an underscore. Those that are entry points only have what the host looks for."""
    plugins = {point.module for one in KINDS.values() for point in plugin_points(one.group)}
    for package in packages():
        for module in modules(package):
            if not any(part.startswith("_") for part in module.__name__.split(".")) and module.__name__ not in plugins:
                yield module


def _sdk_modules() -> Iterator[ModuleType]:
    """Yield the functions for skills that families add to the generated ones, as skills import them."""
    written = {module.__file__: module for package in packages() for module in modules(package)}
    for family in families():
        if family.sdk is not None:
            module = ModuleType(f"sideband.skill.{family.name}")
            vars(module).update(vars(written[str(family.sdk)]), __name__=module.__name__)
            yield module


def _settings() -> Facts:
    facts = setting_facts("setting:", Settings)
    for name, config in plugin_configs().items():
        facts |= setting_facts(f"setting:plugins.{name}", config)
    return facts


def _commands() -> Facts:
    facts: Facts = {}
    for point in plugin_points(KINDS["command"].group):
        facts |= command_facts(import_module(point.module).sideband_commands())
    # The options that each command with a host gets.
    return facts | command_facts(Command("*", "", lambda _: None, lambda *_: None, opens="host"))


def _tools() -> Facts:
    facts: Facts = {}
    for point in plugin_points(KINDS["tool"].group):
        found = point.load()
        for one in [found] if isinstance(found, Tool) else found.sideband_tools():
            facts |= tool_facts(one) if isinstance(one, Tool) else {}
    return facts


def _formats() -> Facts:
    sent = {kind: {"__type__": kind, **message} for kind, message in EXAMPLES.items()}
    sent["result.error"] = {"__type__": "result", **FAILED}
    return {
        **model_facts("message", (*MESSAGES, *PARTS, *DELTAS, Usage)),
        **model_facts("session", (SessionHeader, *get_args(Entry))),
        **record_facts("ledger:intent", Intent, hidden=("time",)),
        **record_facts("ledger:outcome", Outcome, hidden=("time",)),
        **record_facts("result:run", RunResult, hidden=NOT_PRINTED),
        **wire_facts(PROTOCOL, sent, {kind: json.loads(line) for kind, line in HOST.items()}, is_required),
    }
