"""``sideband config get|set|unset|edit|path``: read and change your settings."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband import SidebandError, UsageError
from sideband.command_line import add_host_options, load_options, notice, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._tables import format_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sideband_settings_file import SettingsFile

__all__ = ["sideband_commands"]

_TABLES = frozenset({"grants", "plugins"})


def sideband_commands() -> Command:
    """Register the command."""
    return Command("config", "show and change settings", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    get = actions.add_parser("get", help="show settings, and where each value comes from")
    get.add_argument("key", metavar="KEY", nargs="?", default="", help="a setting or a table; all settings if omitted")
    setting = actions.add_parser("set", help="set a value in your settings, if it is valid")
    setting.add_argument("key", metavar="KEY", help="the setting, such as agent.model")
    setting.add_argument(
        "value", metavar="VALUE", help='a value of TOML, such as 5, true or ["a", "b"], or else a text'
    )
    unset = actions.add_parser("unset", help="remove a value from your settings")
    unset.add_argument("key", metavar="KEY", help="the setting")
    edit = actions.add_parser("edit", help="open your settings in an editor, and check them")
    path = actions.add_parser("path", help="show where your settings are")
    for action in (get, setting, unset, edit, path):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    actions = {"get": _get, "set": _set, "unset": _unset, "edit": _edit, "path": _path}
    actions[arguments.action](arguments)
    return ExitCode.SUCCESS


def _get(arguments: Namespace) -> None:
    from .._settings._values import values_at

    settings = load_options(arguments, tolerant=True)
    for problem in settings.problems:
        notice(f"notice: {problem.message}")
    found = run_async(lambda: values_at(arguments.key, settings))
    table = format_table(["setting", "value", "source"], [[one["key"], one["value"], one["source"]] for one in found])
    print_data(arguments, found[0] if [one["key"] for one in found] == [arguments.key] else found, table)


def _set(arguments: Namespace) -> None:
    from sideband.settings import setting

    path = _keys(arguments.key)
    value: Any = setting(["value"], arguments.value)["value"]
    file = _changed(arguments, path, lambda file: file.set(path, value))
    data = {"key": arguments.key, "value": value, "file": str(file.path)}
    print_data(arguments, data, f"set `{arguments.key}` in {file.path}")
    _report_other_source(arguments, path, file)


def _unset(arguments: Namespace) -> None:
    path = _keys(arguments.key)

    def remove(file: SettingsFile) -> None:
        if file.get(path) is None:
            raise UsageError(
                f"{file.path} does not set `{arguments.key}`",
                hint=f"`sideband config get {arguments.key}` shows where the value comes from",
            )
        file.remove(path)

    file = _changed(arguments, path, remove)
    print_data(arguments, {"key": arguments.key, "file": str(file.path)}, f"removed `{arguments.key}` from {file.path}")


def _changed(arguments: Namespace, path: Sequence[str], change: Any) -> SettingsFile:
    """Change the file, unless it is invalid afterwards."""
    from sideband.state import default_home
    from sideband_settings_file import changed_settings

    from .._settings._checks import check_file

    loaded = load_options(arguments, tolerant=True)
    with changed_settings(default_home()) as file:
        change(file)
        run_async(lambda: check_file(file, loaded, [path[1]] if path[0] == "plugins" else []))
    return file


def _keys(key: str) -> tuple[str, ...]:
    path = _parsed(key)
    if not all(path) or len(path) < 2:
        raise UsageError(f"`{key}` is not a setting", hint="write the table and the key, such as agent.model")
    if path[0] in _TABLES and len(path) < (3 if path[0] == "plugins" else 2):
        raise UsageError(f"`{key}` is a table", hint="name a key in it, such as plugins.http.timeout")
    return path


def _parsed(key: str) -> tuple[str, ...]:
    """Return the parts of a key, which may be quoted as in TOML: `plugins.llm.prices."openai:gpt-5.1"`."""
    import tomllib

    try:
        inside: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return tuple(key.split("."))
    path = []
    while isinstance(inside, dict) and len(inside) == 1:
        (part,) = inside
        path.append(part)
        inside = inside[part]
    return tuple(path)


def _report_other_source(arguments: Namespace, path: Sequence[str], file: SettingsFile) -> None:
    """Report a source of higher rank, which hides the new value."""
    sources = load_options(arguments, tolerant=True).sources
    for known, source in sources.items():
        if known[: len(path)] == path[: len(known)] and not _is_file(source, file):
            notice(f"notice: {source} sets `{'.'.join(known)}` too, and its value is used here")
            return


def _is_file(source: str, file: SettingsFile) -> bool:
    from pathlib import Path

    return Path(source).resolve() == file.path


def _edit(arguments: Namespace) -> None:
    from sideband.state import default_home, make_home
    from sideband_settings_file import SETTINGS_FILE, changed_settings, read_text, settings_path

    from .._settings._editor import edited

    home = default_home()
    make_home(home)
    path = settings_path(home)
    text = before = read_text(path)
    while True:
        text = edited(text, home, f"edited-{SETTINGS_FILE}")
        if text == before:
            print_data(arguments, {"file": str(path), "changed": False}, "nothing was changed")
            return
        try:
            _check_text(arguments, text)
            break
        except SidebandError as error:
            if not _again(error):
                raise
    with changed_settings(home, repairs=True) as file:
        if file.text != before:
            raise UsageError(f"another command has changed {path} meanwhile", hint="edit it again; nothing was changed")
        file.replace(text)
    print_data(arguments, {"file": str(path), "changed": True}, f"changed {path}")


def _check_text(arguments: Namespace, text: str) -> None:
    from sideband.state import default_home
    from sideband_settings_file import SettingsFile, settings_path

    from .._settings._checks import check_file

    file = SettingsFile(settings_path(default_home()), "")
    file.replace(text)
    loaded = load_options(arguments, tolerant=True)
    run_async(lambda: check_file(file, loaded))


def _again(error: SidebandError) -> bool:
    """Ask whether to edit a text again that is invalid. Without a terminal, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from .._dialogs._questions import confirmed

    notice(f"error: {error.message}")
    return confirmed("Edit it again? Otherwise, nothing is changed.")


def _path(arguments: Namespace) -> None:
    from sideband.state import default_home
    from sideband_settings_file import settings_path

    path = settings_path(default_home())
    settings = load_options(arguments, tolerant=True)
    project = settings.project_file
    data = {"path": str(path), "exists": path.is_file(), "project": project and str(project)}
    print_data(arguments, data, str(path))
