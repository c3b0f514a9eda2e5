"""``sideband plugins list|show|why|order|check|trace|reload|trust|distrust``: list plugins, explain what they do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sideband.command_line import (
    add_host_options,
    joined,
    load_options,
    notice,
    print_data,
    run_async,
    unchanged_policy,
)
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._errors import KitMissing
from .._host._load_errors import error_data
from .._host._plugins import open_plugins
from .._plugins._show import configure_show, show
from .._plugins._trace import configure_trace, trace
from .._terminal._tables import format_table, paragraph

if TYPE_CHECKING:
    from sideband.plugins import PluginRecord
    from sideband.settings import LoadedSettings

    from .._host._plugins import OpenPlugins

__all__ = ["sideband_commands"]

_GIVEN_BY = {"policy": "by the configuration", "remembered": "by the user"}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("plugins", "list plugins and explain their states", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all plugins and their last states, without importing any")
    listing.add_argument("--kind", help="list only this kind: op, hook, command, …")
    listing.add_argument("--state", help="list only this state: found, denied, failed, active, …")
    why = actions.add_parser("why", help="explain the state of a plugin, with the traceback of a load error")
    why.add_argument("name", metavar="PLUGIN", help="a plugin, as NAME or KIND.NAME")
    order = actions.add_parser("order", help="show the order in which a hook calls plugins, with the reasons")
    order.add_argument("hook", metavar="HOOK", help="the name of the hook")
    check = actions.add_parser(
        "check",
        help="import and validate all plugins, or run the conformance tests of one; exit code 1 if a test fails, 5 if "
        "a plugin or the host is unusable",
    )
    check.add_argument(
        "name",
        metavar="PLUGIN",
        nargs="?",
        help="a plugin, as NAME or KIND.NAME, or a distribution: run the tests of its kind, of `sideband-testing`",
    )
    reload = actions.add_parser(
        "reload", help="try whether a plugin can be reloaded; `/reload PLUGIN` in a chat reloads it there"
    )
    reload.add_argument("name", metavar="PLUGIN", help="a plugin, as NAME or KIND.NAME")
    configure_show(
        actions.add_parser("show", help="show what a plugin is and provides, its rights, hooks, ops and configuration")
    )
    configure_trace(
        actions.add_parser("trace", help="run a command and show each call of a plugin's hook: time, action, reason")
    )
    trust = actions.add_parser("trust", help="let local files be plugins, with their current content")
    trust.add_argument("files", metavar="FILE", nargs="+", help="a file that `[policy.files]` names; read it first")
    distrust = actions.add_parser("distrust", help="let local files be plugins no longer")
    distrust.add_argument("files", metavar="FILE", nargs="+", help="a file that was trusted")
    for action in (listing, why, order, check, reload, trust, distrust):
        add_host_options(action)


def _run(arguments: Namespace) -> int:
    actions: dict[str, Callable[[Namespace], int]] = {
        "list": _list,
        "why": _why,
        "order": _order,
        "check": _check,
        "reload": _reload,
        "show": show,
        "trace": trace,
        "trust": _trust,
        "distrust": _distrust,
    }
    return actions[arguments.action](arguments)


def _list(arguments: Namespace) -> ExitCode:
    from sideband.plugins import list_plugins, note_rights, read_last_start
    from sideband.state import default_home

    home = default_home()
    known = unchanged_policy(arguments, home)
    policy = known or _settings(arguments).plugin_policy()
    records, problems = list_plugins(home, policy)
    note_rights(home, policy, records)
    for problem in problems:
        notice(f"notice: {problem}")
    past = {}
    start = read_last_start(home)
    for record in records:
        if start is not None and (last := start.state_of(record)) is not None:
            past[record] = start.time
            record.move(last.state, last.reason, decided_by=last.decided_by)
    chosen = [
        record
        for record in records
        if arguments.kind in (None, record.kind) and arguments.state in (None, record.state.value)
    ]
    _print_records(arguments, chosen, past)
    return ExitCode.SUCCESS


def _settings(arguments: Namespace) -> LoadedSettings:
    """Load the settings, and print a notice for each invalid part, which is omitted."""
    settings = load_options(arguments, tolerant=True)
    for problem in settings.problems:
        notice(f"notice: {problem.message}")
    return settings


def _print_records(
    arguments: Namespace, records: list[PluginRecord], past: Mapping[PluginRecord, str] | None = None
) -> None:
    """Print plugins.

    Args:
        arguments: the parsed options.
        records: the plugins.
        past: the time of the last start, for each plugin whose state is that of the last start.
    """
    past = past or {}
    rows = [
        [
            record.kind,
            record.name,
            record.state.value,
            f"{record.distribution} {record.version}",
            "editable" if record.editable else "local file" if record.file else "",
        ]
        for record in records
    ]
    lines = [format_table(["kind", "name", "state", "distribution", ""], rows)]
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        if record.reason:
            labels.setdefault((record.state.value, record.reason), {})[record.label] = None
    reasons = [
        paragraph(f"{', '.join(alike)} {'is' if len(alike) == 1 else 'are'} {state}: {reason}", hanging="  ")
        for (state, reason), alike in labels.items()
    ]
    if shown := [record for record in records if record in past]:
        states = " and ".join(sorted({f"`{record.state.value}`" for record in shown}))
        lines += ["", paragraph(f"{states}: at the last start of a host, at {past[shown[0]]}", hanging="  ")]
    if reasons:
        lines += ["", *reasons]
    rights = [
        paragraph(f"{record.label} was given rights of its own: {_rights_text(record)}", hanging="  ")
        for record in records
        if record.rights
    ]
    if rights:
        lines += ["", *rights]
    data = [{**record.as_dict(), "as_of": past.get(record)} for record in records]
    print_data(arguments, data, "\n".join(lines))


def _rights_text(record: PluginRecord) -> str:
    return ", ".join(f"{one['capability']} ({_GIVEN_BY[one['given_by']]})" for one in record.rights)


def _why(arguments: Namespace) -> ExitCode:
    kind, dot, name = arguments.name.rpartition(".")
    settings = _settings(arguments)
    loaded: list[str] = []

    async def main() -> list[tuple[PluginRecord, dict[str, Any] | None]]:
        from sideband.plugins import PluginError, State

        found = []
        async with open_plugins(settings) as opened:
            _print_problems(settings, opened)
            for record in opened.plugins.why(name, kind=kind if dot else None):
                error = None
                if record.state is State.FOUND:
                    loaded.append(record.label)
                if record.kind != "skill":
                    try:
                        await opened.load(record.kind, record.name)
                    except PluginError as failure:
                        error = error_data(failure)  # the record contains the reason
                found.append((record, error))
        return found

    found = run_async(main)
    texts = [_explain(record, error, loaded=record.label in loaded) for record, error in found]
    data = [{**record.as_dict(), "error": error} for record, error in found]
    print_data(arguments, data, "\n\n".join(texts))
    return ExitCode.SUCCESS


def _print_problems(settings: LoadedSettings, opened: OpenPlugins) -> None:
    """Print why the host cannot be opened, unless the reason is the configuration, whose problems are printed."""
    for problem in opened.problems[len(settings.problems) :]:
        notice(f"notice: the host cannot be opened: {problem}")


def _explain(record: PluginRecord, error: dict[str, Any] | None, *, loaded: bool) -> str:
    lines = [
        f"{record.label}: {record.state.value}" + (" (loaded by this command, to check it)" if loaded else ""),
        *_source(record),
    ]
    lines += [
        f"  {'then' if number else 'first':<10} {step.state.value}"
        + (f": {step.reason}" if step.reason else "")
        + f" [{step.decided_by}]"
        for number, step in enumerate(record.trail)
    ]
    if error is not None:
        if error["file"]:
            lines.append(f"  raised in  {error['file']}, line {error['line']}")
        lines += [f"    {line}" for line in error["traceback"].splitlines()]
    return joined(lines)


def _source(record: PluginRecord) -> list[str]:
    """Return the lines about the origin of a plugin."""
    if record.file:
        return [f"  file       {record.file}", f"  digest     {record.digest or '-'}"]
    return [
        f"  package    {record.distribution} {record.version}" + (" (editable)" if record.editable else ""),
        f"  object     {record.value or '(in memory)'}",
        f"  location   {record.location or '-'}, installed by {record.installer or '?'}",
    ]


def _order(arguments: Namespace) -> ExitCode:
    settings = _settings(arguments)

    async def main() -> Any:
        async with open_plugins(settings) as opened:
            _print_problems(settings, opened)
            return opened.plugins.hooks.order(arguments.hook)

    ordered = run_async(main)
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
    if arguments.name is not None:
        return _check_one(arguments)
    settings = _settings(arguments)

    async def main() -> tuple[list[PluginRecord], bool]:
        async with open_plugins(settings) as opened:
            _print_problems(settings, opened)
            await opened.load_all()
            return list(opened.plugins.records), not opened.problems

    records, opens = run_async(main)
    _print_records(arguments, records)
    return ExitCode.SUCCESS if opens and not any(record.state.broken for record in records) else ExitCode.CONFIGURATION


def _check_one(arguments: Namespace) -> ExitCode:
    """Run the conformance tests of a plugin in a process of its own, so that no plugin imports the testing kit."""
    import subprocess
    import sys
    from importlib.util import find_spec

    if find_spec("sideband_testing") is None:
        raise KitMissing(["sideband_testing"])
    options = ["--json"] if arguments.json else []
    program = [sys.executable, "-m", "sideband_testing", "check", *options, "--", arguments.name]
    code = subprocess.run(program, check=False).returncode  # noqa: S603  this Python, and no shell
    # Anything but these is the end of the process by the plugin itself.
    known = (ExitCode.SUCCESS, ExitCode.FAILURE, ExitCode.USAGE)
    return ExitCode(code) if code in known else ExitCode.CONFIGURATION


def _reload(arguments: Namespace) -> ExitCode:
    """Reload a plugin in a host of this command, which changes no other host."""
    kind, dot, name = arguments.name.rpartition(".")
    settings = _settings(arguments)

    async def main() -> tuple[PluginRecord, ...]:
        from contextlib import suppress

        from sideband.plugins import PluginError

        async with open_plugins(settings) as opened:
            _print_problems(settings, opened)
            for record in opened.plugins.why(name, kind=kind if dot else None):
                if record.kind != "skill":
                    with suppress(PluginError):  # the reload repairs it, or reports what is wrong
                        await opened.load(record.kind, record.name)
            return await opened.plugins.reload(name, kind=kind if dot else None)

    records = run_async(main)
    lines = [f"{one.label} ({one.distribution} {one.version}) can be reloaded while a host runs" for one in records]
    print_data(arguments, [one.as_dict() for one in records], joined(lines))
    return ExitCode.SUCCESS


def _trust(arguments: Namespace) -> ExitCode:
    """Trust local files with their current content. If one cannot be trusted, no file is. Nothing is imported."""
    from pathlib import Path

    from sideband.plugins import list_plugins
    from sideband.settings import trust_plugins
    from sideband.state import default_home

    home = default_home()
    trusted = trust_plugins(home, map(Path, arguments.files))
    records, _ = list_plugins(home, _settings(arguments).plugin_policy())
    named = {record.file: record.label for record in records if record.file}
    lines = []
    for path, digest in trusted.items():
        lines.append(f"trusted {path} with its current content (SHA-256 {digest})")
        if path not in named:
            lines.append(f'to use it, add a line such as "hook.NAME" = "{path}" under [policy.files]')
    data = [{"file": path, "digest": digest, "plugin": named.get(path)} for path, digest in trusted.items()]
    print_data(arguments, data, joined(lines))
    return ExitCode.SUCCESS


def _distrust(arguments: Namespace) -> ExitCode:
    """Trust local files no longer. Hosts that run keep what they have loaded."""
    from pathlib import Path

    from sideband.settings import distrust_plugins
    from sideband.state import default_home

    found = distrust_plugins(default_home(), map(Path, arguments.files))
    lines = [f"{path} {'is no longer' if was else 'was not'} trusted" for path, was in found.items()]
    print_data(arguments, [{"file": path, "was_trusted": was} for path, was in found.items()], joined(lines))
    return ExitCode.SUCCESS
