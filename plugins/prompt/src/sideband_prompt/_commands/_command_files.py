"""The Markdown files that are slash commands: those of the user, then those of the trusted project."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from sideband_project_instructions import read_file

from ._command_file import CommandFile, parse_command

_PROJECT_FILE = "sideband.toml"
_FOLDERS = (".sideband/commands", "commands", ".claude/commands")
_WORD = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
_MAX_DEPTH = 4
_MAX_FILES = 500


@frozen
class CommandFiles:
    """The slash commands that are files.

    Attributes:
        commands: by name; a file of the user comes before one of the project with the same name.
        problems: the files that are not used, with the reasons.
    """

    commands: dict[str, CommandFile]
    problems: tuple[str, ...]


def find_commands(home: Path, project: Path | None, limit: int) -> CommandFiles:
    """Read the slash commands. A file is read within its folder only, without following links out of it.

    Args:
        home: the host's state folder.
        project: the folder of the trusted project, if there is one.
        limit: the most bytes of a file.
    """
    commands: dict[str, CommandFile] = {}
    problems: list[str] = []
    places = [(home / "commands", "")]
    if project is not None:
        # A folder `commands` can be anything, unless it is next to the file that makes the folder a project.
        with_file = (project / _PROJECT_FILE).is_file()
        places += [(project, name) for name in _FOLDERS if name != "commands" or with_file]
    for root, folder in places:
        for name in _files(root, folder):
            path = root / folder / name
            words = [part.lower() for part in name.removesuffix(".md").split("/")]
            if not all(map(_WORD.match, words)):
                problems.append(f"{path}: its name cannot be typed: use letters, digits, `-` and `_`")
                continue
            reading = read_file(root, f"{folder}/{name}" if folder else name, limit)
            if reading is None:
                continue
            problem = reading.problem or (f"larger than {limit:,} bytes" if len(reading.content) > limit else "")
            command = parse_command(":".join(words), path, reading.content)
            if not problem and not command.text:
                problem = "it is empty"
            if not problem and command.name in commands:
                problem = f"{commands[command.name].path} has the same name"
            if problem:
                problems.append(f"{path}: {problem}")
            else:
                commands[command.name] = command
    return CommandFiles(commands, tuple(problems))


def _files(root: Path, folder: str) -> list[str]:
    """Return the names of the Markdown files below a folder, sorted. A link to a folder is not searched."""
    start = Path(os.path.realpath(root / folder))
    if not start.is_relative_to(os.path.realpath(root)):
        return []
    found = [one for one, _ in zip(_below(start, "", _MAX_DEPTH), range(_MAX_FILES), strict=False)]
    return sorted(found)


def _below(folder: Path, prefix: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda one: one.name)
    except OSError:
        return
    for one in ordered:
        if one.name.startswith("."):
            continue
        if one.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(folder / one.name, f"{prefix}{one.name}/", depth - 1)
        elif one.name.endswith(".md"):
            yield f"{prefix}{one.name}"
