"""Copies of skills whose files a loader has in memory. What a server sent is checked before it is written."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import safe_text
from ..loading import SkillBundle, SkillCopy, SkillProblem
from ..rendering import render
from ..state import FolderFailed, StoredFile, publish_folder

MAX_SKILLS = 1_000
"""The maximum number of skills whose files one loader may return."""
MAX_FILES = 2_000
"""The maximum number of files of one of them."""
MAX_BYTES = 64 << 20
"""The maximum size of all files that one loader may return."""
MAX_PATH = 512
"""The maximum length of a path in bytes."""
_MAX_NAME = 255
_LONGEST_SHOWN = 120
_HINT = "report this to the source of the skill; its other skills are not affected"


def copy_skills(loader: str, given: object, home: Path) -> tuple[list[SkillCopy], list[SkillProblem]]:
    """Copy the files that a loader returned to ``home/skills``, each skill on its own. It blocks on the disk.

    Args:
        loader: the name of the loader's plugin.
        given: the skills; a plugin may return anything.
        home: the state folder of the host.

    Returns:
        The copies, and one problem for each skill that was not copied.
    """
    copies: list[SkillCopy] = []
    problems: list[SkillProblem] = []
    if not isinstance(given, list | tuple):
        return [], [_problem(loader, "", f"`files` must be a tuple of SkillBundle, got a {type(given).__name__}")]
    room = MAX_BYTES
    for one in islice(given, MAX_SKILLS):
        if not isinstance(one, SkillBundle) or not isinstance(one.name, str) or not isinstance(one.place, str):
            problems.append(_problem(loader, "", f"`files` must contain SkillBundle, got a {type(one).__name__}"))
            continue
        named = f"the skill {_shown(one.name)}" + (f" from {_shown(one.place)}" if one.place else "")
        try:
            files = _checked(one.files, room)
            room -= sum(len(file.content) for file in files)
            copies.append(SkillCopy(one.name, publish_folder(home / "skills", files), f"loader {loader}"))
        except FolderFailed as error:
            problems.append(_problem(loader, named, error.message))
        except Exception as error:  # noqa: BLE001  a mapping of a plugin may raise anything
            problems.append(_problem(loader, named, safe_text(error)))
    if len(given) > MAX_SKILLS:
        problems.append(_problem(loader, "", f"it returned {len(given):,} skills; the limit is {MAX_SKILLS:,}"))
    return copies, problems


def _checked(files: Any, room: int) -> list[StoredFile]:
    """Return the files of one skill.

    Raises:
        TypeError: if they are not paths and bytes.
        ValueError: if a path or a content cannot be stored as it is, or there are too many.
    """
    if not isinstance(files, Mapping):
        raise TypeError(f"its files must map paths to bytes, got a {type(files).__name__}")
    if not files:
        raise ValueError("it has no files")
    if len(files) > MAX_FILES:
        raise ValueError(f"it has {len(files):,} files; the limit is {MAX_FILES:,}")
    found: list[StoredFile] = []
    folded: dict[str, tuple[str, bool]] = {}
    for path, content in files.items():
        if not isinstance(path, str) or not isinstance(content, bytes):
            raise TypeError(f"its files must map paths to bytes, got {_shown(path)}: {type(content).__name__}")
        if (problem := _path_problem(path)) is not None:
            raise ValueError(f"the path {_shown(path)} {problem}")
        for prefix, is_file in _prefixes(path):
            key = unicodedata.normalize("NFC", prefix).casefold()
            if folded.setdefault(key, (prefix, is_file)) != (prefix, is_file):
                raise ValueError(f"the path {_shown(path)} collides with {_shown(folded[key][0])}")
        room -= len(content)
        if room < 0:
            raise ValueError(f"the files of this loader exceed the limit of {MAX_BYTES >> 20} MiB")
        found.append(StoredFile(path, content))
    return found


def _path_problem(path: str) -> str | None:
    """Return why a path cannot be part of a copy, or ``None``."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        return "must be relative and normalized, without `.` and `..`"
    if not path.isprintable() or "\\" in path:
        return "has a character that is not allowed"
    if len(path.encode()) > MAX_PATH or any(len(part.encode()) > _MAX_NAME for part in parts):
        return f"is longer than {MAX_PATH} bytes, or a part of it than {_MAX_NAME}"
    return None


def _prefixes(path: str) -> Iterator[tuple[str, bool]]:
    """Yield the folders of a path and the path itself, each with whether it is a file."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end]), end == len(parts)


def _shown(value: object) -> str:
    """Return a name of others for a message."""
    return f"`{render(str(value)[:_LONGEST_SHOWN])}`"


def _problem(loader: str, named: str, reason: str) -> SkillProblem:
    text = f"{named}: {reason}" if named else f"the loader `{loader}` failed: {reason}"
    return SkillProblem(f"loader {loader}", "skill.copy", text, _HINT, fatal=True)
