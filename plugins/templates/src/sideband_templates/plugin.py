"""``sideband new``: make the package of a skill or a plugin, or the project of a distribution."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sideband.command_line import add_json_option, print_data
from sideband.commands import Command
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode

__all__ = ["sideband_commands"]

_KINDS = ("op", "guard", "hook", "provider", "tool", "tool-source", "loader", "store", "sandbox", "command")
_INSTALL = ("python -m venv .venv", '.venv/bin/pip install -e ".[test]"')
_NEXT = {
    "skill": (*_INSTALL, ".venv/bin/python -m pytest", ".venv/bin/sideband skills validate src/{module}"),
    "plugin": (*_INSTALL, ".venv/bin/python -m pytest", ".venv/bin/sideband plugins check"),
    "distribution": (
        "sideband dist lock",
        "python -m venv env",
        "sideband dist sync --environment env",
        "sideband dist check --environment env",
    ),
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("new", "make a skill, a plugin or a distribution from a template", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("template", choices=tuple(_NEXT), metavar="TEMPLATE", help=f"what to make: {', '.join(_NEXT)}")
    parser.add_argument("name", metavar="NAME", help="its name, such as weather; the project is named after it")
    parser.add_argument(
        "answers", nargs="*", default=[], metavar="key=value",
        help="an answer to another question, such as author_name='Ada Lovelace'; others have their defaults",
    )  # fmt: skip
    parser.add_argument("--kind", choices=_KINDS, metavar="KIND", help=f"the kind of a plugin: {', '.join(_KINDS)}")
    parser.add_argument(
        "--output", type=Path, default=Path(), metavar="FOLDER",
        help="the parent folder of the project (default: the current folder)",
    )  # fmt: skip
    add_json_option(parser)


def _run(arguments: Namespace) -> ExitCode:
    from ._baking import bake  # noqa: PLC0415  jinja2 is slow to import, and listing the commands must be fast

    answers = _answers(arguments.answers)
    answers["project" if arguments.template == "distribution" else "name"] = arguments.name
    if arguments.kind is not None:
        answers["kind"] = arguments.kind
    if arguments.template == "plugin" and "kind" not in answers:
        raise UsageError("the kind of the plugin is missing", hint=f"add --kind with one of {', '.join(_KINDS)}")
    folder = bake(arguments.template, answers, arguments.output)
    steps = [f"cd {shlex.quote(str(folder))}", *_NEXT[arguments.template]]
    steps = [step.format(module=folder.name.replace("-", "_")) for step in steps]
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    lines = (f"created {folder} with {len(files)} files; continue with:", "", *(f"    {step}" for step in steps))
    print_data(arguments, {"folder": str(folder), "files": files, "next": steps}, "\n".join(lines))
    return ExitCode.SUCCESS


def _answers(words: list[str]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"expected key=value, got `{word}`", hint="write key=value")
        if key in answers:
            raise UsageError(f"`{key}` is given twice", hint="give one answer to each question")
        answers[key] = value
    return answers
