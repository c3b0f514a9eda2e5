"""``sideband instructions list|forget``: the instruction files of the folder, and the answers about them."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sideband import UsageError
from sideband.command_line import add_json_option, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._tables import format_table

__all__ = ["sideband_commands"]

_WORDS = {
    "used": "used",
    "refused": "not used: you answered no",
    "changed": "not used: changed since your answer",
    "new": "not used: not answered yet",
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("instructions", "list the instruction files of the folder, and forget answers", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="list the instruction files of the working directory, then the answers about other files"
    )
    forget = actions.add_parser("forget", help="forget the answers about files, so that you are asked again")
    forget.add_argument("file", metavar="FILE", nargs="+", help="a file that you answered about; it need not exist")
    for action in (listing, forget):
        add_json_option(action)


def _run(arguments: Namespace) -> ExitCode:
    {"list": _list, "forget": _forget}[arguments.action](arguments)
    return ExitCode.SUCCESS


def _list(arguments: Namespace) -> None:
    from sideband.settings import trusted_project
    from sideband.state import default_home
    from sideband_project_instructions import Answers, known_instructions

    home, here = default_home(), Path.cwd()
    found = known_instructions(here, trusted_project(home, here), home)
    rows = [
        {
            "file": str(file.path),
            "used": file in found.used,
            "state": _state(found.decisions[file.path], file.problem, in_project=file.in_project),
        }
        for file in found.files
    ]
    rows += [
        {"file": str(path), "used": use, "state": _WORDS["used" if use else "refused"]}
        for path, use in Answers(home).given().items()
        if path not in found.decisions
    ]
    table = format_table(["file", "state"], [[row["file"], row["state"]] for row in rows], wrapped=True)
    print_data(arguments, rows, table if rows else "no instruction files")


def _state(decision: str, problem: str, *, in_project: bool) -> str:
    if problem:
        return f"not used: {problem}"
    return "used: it belongs to a trusted project" if in_project else _WORDS[decision]


def _forget(arguments: Namespace) -> None:
    from sideband.state import default_home
    from sideband_project_instructions import Answers

    answers = Answers(default_home())
    paths = [Path(os.path.realpath(Path(file).parent), Path(file).name) for file in arguments.file]
    unknown = [path for path in paths if path not in answers.given()]
    if unknown:
        raise UsageError(
            f"there is no answer about `{unknown[0]}`", hint="`sideband instructions list` shows the answers"
        )
    for path in paths:
        answers.forget(path)
    text = "\n".join(f"forgot the answer about {path}" for path in paths)
    print_data(arguments, [{"file": str(path)} for path in paths], text)
