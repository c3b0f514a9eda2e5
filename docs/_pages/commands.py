"""The page on the command line, with the arguments and options of each command."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from importlib import import_module

from sideband.command_line._opened import add_shared_options
from sideband.command_line._parser import Parser
from sideband.exit_codes import ExitCode
from sideband.plugins._kinds import KINDS

from .docstrings import attributes
from .packages import plugin_points
from .tables import table

__all__ = ["commands_page"]

_HEAD = """\
`sideband help COMMAND` shows the arguments of a command, also of one action (`sideband help skills validate`). Options
cannot be abbreviated. Values `key=value` are text that the schema converts; `key:=JSON` is JSON. State is stored in
`~/.sideband`, or in the folder named by `SIDEBAND_HOME`.

With `--json`, in any position, every command that has the option prints JSON, including errors; `run` prints one event
per line."""


def commands_page() -> list[str]:
    """Return the lines of the page."""
    commands = [import_module(point.module).sideband_commands() for point in plugin_points(KINDS["command"].group)]
    commands.sort(key=lambda one: one.name)
    lines = ["# Commands", "", *_HEAD.splitlines()]
    rows = [[f"[`sideband {one.name}`](#sideband-{one.name})", one.summary] for one in commands]
    lines += ["", *table(["command", "purpose"], rows)]
    lines += ["", "## Exit codes", ""]
    lines += table(
        ["code", "meaning"], [[f"`{ExitCode[name]:d}`", text] for name, text in attributes(ExitCode).items()]
    )
    lines += ["", "## Shared options", "", "Commands that open a host have these options too.", ""]
    shared = Parser(add_help=False)
    add_shared_options(shared)
    lines += _arguments(shared, set())
    shown = {name for action in shared._actions for name in action.option_strings}  # noqa: SLF001
    for command in commands:
        parser = Parser(prog=f"sideband {command.name}", add_help=False)
        command.configure(parser)
        lines += ["", f"## sideband {command.name}", "", f"{command.summary[0].upper()}{command.summary[1:]}."]
        lines += _described(parser, f"sideband {command.name}", shown)
    return lines


def _described(parser: ArgumentParser, name: str, shown: set[str]) -> Iterator[str]:
    below = [one for one in parser._actions if isinstance(one, _SubParsersAction)]  # noqa: SLF001
    rows = list(_arguments(parser, shown))
    if rows:
        yield from ["", *rows]
    for group in below:
        helps = {one.dest: one.help or "" for one in group._choices_actions}  # noqa: SLF001
        for action, one in group.choices.items():
            text = helps.get(action, "")
            yield from ["", f"### {name} {action}", "", f"{text[:1].upper()}{text[1:]}."]
            yield from _described(one, f"{name} {action}", shown)


def _arguments(parser: ArgumentParser, shown: set[str]) -> Iterator[str]:
    """Yield a table of the arguments and options, or nothing."""
    rows = []
    for one in parser._actions:  # noqa: SLF001  argparse has no other way to read a parser
        if isinstance(one, _SubParsersAction) or {"-h", *shown} & set(one.option_strings):
            continue
        value = _value(one.metavar, one.dest, one.choices) if one.nargs != 0 else ""
        words = [f"{name} {value}".rstrip() for name in one.option_strings] or [value]
        if one.nargs in ("*", "+"):
            words = [f"{word} …" for word in words]
        rows.append([", ".join(f"`{word}`" for word in words), (one.help or "") % {**vars(one), "prog": parser.prog}])
    if rows:
        yield from table(["argument", "meaning"], rows)


def _value(metavar: object, name: str, choices: object) -> str:
    if isinstance(metavar, str):
        return metavar
    if choices is not None:
        return "|".join(map(str, choices))  # type: ignore[call-overload]
    return name
