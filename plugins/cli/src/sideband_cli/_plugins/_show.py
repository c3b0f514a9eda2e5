"""``sideband plugins show PLUGIN``: what one plugin is, asks for, was given, and provides."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, joined, load_options, notice, print_data, run_async
from sideband.exit_codes import ExitCode

from .._audit._record_text import labeled
from .._terminal._tables import first_sentence, format_table
from ._facts import facts_of

if TYPE_CHECKING:
    from sideband.settings import LoadedSettings

_GIVEN_BY = {"policy": "by the configuration", "remembered": "by the user"}


def configure_show(parser: ArgumentParser) -> None:
    """Add the arguments of ``plugins show``."""
    add_host_options(parser)
    parser.add_argument("name", metavar="PLUGIN", help="a plugin, as NAME or KIND.NAME")


def show(arguments: Namespace) -> int:
    """Show a plugin. It is imported if it is allowed and compatible; all others are not."""
    settings = load_options(arguments, tolerant=True)
    for problem in settings.problems:
        notice(f"notice: {problem.message}")
    found = run_async(lambda: _facts(settings, arguments.name))
    print_data(arguments, found, "\n\n".join(describe(one) for one in found))
    return ExitCode.CONFIGURATION if any(one["error"] for one in found) else ExitCode.SUCCESS


async def _facts(settings: LoadedSettings, words: str) -> list[dict[str, Any]]:
    from sideband.plugins import PluginHost, note_rights
    from sideband.state import default_home

    kind, dot, name = words.rpartition(".")
    home, policy = default_home(), settings.plugin_policy()
    # Without a host, there is nothing that could run an effect; a strict one would refuse to show what is broken.
    async with PluginHost(policy._replace(strict=False, guards=frozenset()), home=home, load_at_start=False) as plugins:
        records = plugins.why(name, kind=kind if dot else None)
        note_rights(home, policy, records)
        return [await facts_of(plugins, record) for record in records]


def describe(facts: Mapping[str, Any]) -> str:
    """Return the facts about one plugin as text."""
    lines = [f"{facts['kind']}.{facts['name']}: {facts['state']}", *_state(facts), *_origin(facts), *_rights(facts)]
    parts = [joined(lines)]
    for title, columns, rows in _tables(facts):
        if rows:
            parts.append(f"{title}:\n{format_table(columns, rows, wrapped=True)}")
    if facts["deprecations"]:
        parts.append("\n".join(["deprecations used:", *(f"  {one}" for one in facts["deprecations"])]))
    return "\n\n".join(parts)


def _state(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["reason"]:
        yield from labeled("reason", f"{facts['reason']} [{facts['decided_by']}]")
    if facts["error"]:
        yield from labeled("remedy", facts["error"]["hint"])
        raised = facts["error"]["raised"]
        if raised and raised["file"]:
            yield from labeled("raised in", f"{raised['file']}, line {raised['line']}")


def _origin(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["file"]:
        yield from labeled("file", facts["file"])
    else:
        yield from labeled("package", facts["package"] + (", editable" if facts["editable"] else ""))
        yield from labeled("object", facts["value"] or "(in memory)")
        yield from labeled("location", f"{facts['location'] or '-'}, installed by {facts['installer'] or '?'}")
    if facts["url"]:
        yield from labeled("source", facts["url"])
    yield from labeled("digest", facts["digest"] or "not known: its files have no recorded hashes")
    if facts["load_ms"] is not None:
        yield from labeled("import", f"{facts['load_ms']:.1f} ms")
    elif facts["kind"] != "skill":
        yield from labeled("import", "not imported, so only what its metadata says is shown")


def _rights(facts: Mapping[str, Any]) -> Iterator[str]:
    given = {one["capability"]: one["given_by"] for one in facts["rights"]}
    for capability in facts["uses"]:
        how = f"given {_GIVEN_BY[given[capability]]}" if capability in given else "not given"
        yield from labeled("asks for", f"{capability}: {how}")
    for capability, source in given.items():
        if capability not in facts["uses"]:
            yield from labeled("was given", f"{capability} {_GIVEN_BY[source]}")
    if facts["provides"]:
        yield from labeled("provides", ", ".join(facts["provides"]))


def _tables(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    hooks = [[one["hook"], one["kind"], _place(one), one["on_failure"]] for one in facts["hooks"]]
    yield (
        "hooks (`sideband plugins order HOOK` shows the place among all)",
        ["hook", "kind", "place", "if it fails"],
        hooks,
    )
    ops = [
        [
            one["op"] + (" (internal)" if one["internal"] else ""),
            ("up to " if one["lower"] else "") + one["level"],
            one["requires"] or "-",
            "yes" if one["undo"] else "no",
        ]
        for one in facts["ops"]
    ]
    yield "ops", ["op", "level", "requires", "undo"], ops
    tools = [
        [one["tool"], one["level"], first_sentence(one["description"])]
        if "tool" in one
        else [f"{one['source']}.*", "-", f"a source of tools, opened per {one['scope']}"]
        for one in facts["tools"]
    ]
    yield "tools", ["tool", "level", "description"], tools
    values = [
        [one["key"], json.dumps(one["value"], ensure_ascii=False), one["source"]] for one in facts["configuration"]
    ]
    yield "configuration", ["key", "value", "source"], values


def _place(hook: Mapping[str, Any]) -> str:
    parts = [hook["phase"]]
    parts += [f"{word} {', '.join(hook[word])}" for word in ("before", "after") if hook[word]]
    if hook["manifest"]:
        parts.append(f"number {hook['manifest']} in [policy.order]")
    if hook["level"] != "safe":
        parts.append(f"from level {hook['level']}")
    return "; ".join(parts)
