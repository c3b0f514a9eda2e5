"""Find the plugin of a command, run it, and convert exceptions to a message and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .._version import __version__
from ..commands import Command, problem_of
from ..errors import SidebandError, UsageError
from ..exit_codes import ExitCode
from ..plugins._discovery import discover
from ..plugins._objects import describe, object_of, verify_locked
from ..plugins._policy import PluginPolicy
from ..plugins._records import PluginRecord
from ..settings._plugin_policy import known_plugin_policy, remember_plugin_policy
from ..state import default_home
from ..suggestions import did_you_mean
from ._contained import contained
from ._errors import OperatingSystemFailed, known_error, print_error
from ._parser import Parser, options_of, parse, with_json_last
from ._streams import flush_output, open_streams, output_is_closed


def run(arguments: list[str]) -> int:
    """Run the command that ``arguments`` name and return the exit code."""
    open_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001  each is reported
        known = known_error(error)
        if isinstance(known, OperatingSystemFailed) and known.broken_pipe and output_is_closed():
            return ExitCode.SUCCESS
        with suppress(OSError):
            print_error(known, error, as_json="--json" in options_of(arguments))
        return known.exit_code
    finally:
        flush_output()
    return code


def _run(arguments: list[str]) -> int:
    found = _find_commands()
    name, *rest = with_json_last(arguments)
    while name == "help":
        name, *rest = [*rest, "--help"]
    if name in ("", "-h", "--help"):
        _print_help(found)
        return ExitCode.SUCCESS
    if name == "--version":  # with more words: alone, it is handled before this module is imported
        sys.stdout.write(json.dumps({"version": __version__}) + "\n")
        return ExitCode.SUCCESS
    if name not in found:
        raise _unknown(name, found)
    command = _load(found[name])
    parsed = parse(_parser_of(command, found[name]), rest)
    if command.opens:
        from ._opened import run_with_host

        return run_with_host(command, parsed)
    code: int = command.run(parsed)
    return code


def command_names() -> list[str]:
    """Return the names of the commands that can be used, sorted. No plugin is imported."""
    found = _find_commands()
    return sorted(name for name, records in found.items() if any(record.state.usable for record in records))


def command_parser(name: str) -> Parser:
    """Return the parser of a command. No plugin but that of the command is imported.

    Raises:
        UsageError: if the command is unknown.
        PluginError: if its plugin cannot be used.
    """
    found = _find_commands()
    if name not in found:
        raise _unknown(name, found)
    return _parser_of(_load(found[name]), found[name])


def _parser_of(command: Command, records: list[PluginRecord]) -> Parser:
    parser = Parser(prog=f"sideband {command.name}", description=command.summary)
    try:
        command.configure(parser)
        if command.opens:
            from ._opened import add_shared_options

            add_shared_options(parser)
    except (Exception, SystemExit) as error:
        from ..plugins._errors import PluginInvalid

        record = next(one for one in records if one.state.usable)
        raise PluginInvalid(record, f"its `configure` failed: {describe(error)}") from error
    return parser


def _find_commands() -> dict[str, list[PluginRecord]]:
    """Return the command plugins by name; several if distributions conflict."""
    home = default_home()
    found: dict[str, list[PluginRecord]] = {}
    for record in discover(home, _policy(home)):
        if record.kind == "command":
            found.setdefault(record.name, []).append(record)
    return found


def _policy(home: Path) -> PluginPolicy:
    """Return the policy about plugins. Commands that use an invalid configuration report it, others work."""
    project = Path.cwd()
    known = known_plugin_policy(home, project, os.environ)
    if known is not None:
        return known
    from ..settings import load_settings

    settings = load_settings(home, project=project, environment=os.environ, tolerant=True)
    policy = settings.plugin_policy()
    if not settings.notices and not settings.problems:  # else commands must read them again, to report these
        remember_plugin_policy(home, project, os.environ, policy)
    return policy


def _unknown(name: str, found: Mapping[str, object]) -> UsageError:
    if name.startswith("-"):
        problem = f"unknown option `{name}`{did_you_mean(name, ['--help', '--json', '--version'])}"
        return UsageError(problem, hint=f"write options after the command, as in `sideband COMMAND {name}`")
    problem = f"unknown command `{name}`{did_you_mean(name, found)}"
    if not found:
        problem += ": no plugin with commands is installed (sideband-cli provides the standard ones)"
    return UsageError(problem, hint="list all commands with `sideband --help`")


def _load(records: list[PluginRecord]) -> Command:
    usable = [record for record in records if record.state.usable]
    if not usable:
        raise _unusable(records)
    (record,) = usable
    verify_locked(record)  # its error is not that of the import
    with contained(record):
        command = object_of(record).sideband_commands()
    if not isinstance(command, Command) or command.name != record.name:
        from ..plugins._errors import PluginInvalid

        raise PluginInvalid(record, "its `sideband_commands()` must return a `Command` of that name")
    if (problem := problem_of(command)) is not None:
        from ..plugins._errors import PluginInvalid

        raise PluginInvalid(record, problem)
    return command


def _unusable(records: list[PluginRecord]) -> SidebandError:
    from ..plugins import _errors

    broken = [record for record in records if record.state.broken]
    if len(broken) > 1:
        return _errors.PluginConflict(broken[0].kind, broken[0].name, broken)
    if broken:
        return _errors.unusable(broken[0])
    return _denied(records[0])


def _denied(record: PluginRecord) -> SidebandError:
    """Return an error whose hint has the keys of the policy that denied the plugin, and their sources."""
    from ..plugins._errors import PluginDenied
    from ..settings import load_settings

    settings = load_settings(default_home(), project=Path.cwd(), environment=os.environ, tolerant=True)
    if settings.policy_problem is not None:
        return settings.policy_problem
    error = PluginDenied(record)
    key = record.decided_by.removeprefix("policy.").partition(" ")[0]
    places = settings.sources.items()
    found = [f"`{'.'.join(path)}` ({source})" for path, source in places if path[:2] == ("policy", key)]
    error.hint = f"change {' or '.join(found)} to allow the plugin" if found else error.hint
    return error


def _print_help(found: Mapping[str, list[PluginRecord]]) -> None:
    from ..rendering import render
    from ._summaries import summary_of

    lines = ["usage: sideband COMMAND …", "", "commands:"]
    width = max(map(len, found), default=0)
    for name, records in sorted(found.items()):
        usable = next((record for record in records if record.state.usable), None)
        summary = f"(unavailable: {_unusable(records).message})" if usable is None else summary_of(usable)
        lines.append(f"  {name:<{width}}  {render(summary)}")
    lines += ["", "`sideband help COMMAND` shows the arguments of a command; `sideband --version` shows the version."]
    sys.stdout.write("\n".join(lines) + "\n")
