"""Which folders and files a command may have, and where it works.

A place without a leading `/` lies in `HOME/files/`, where the family `files` keeps what skills and people work on. Any
other is absolute, and resolved through all symbolic links when the parameters are read: what is compared with the
grant, shown to a person, recorded and given to the sandbox is one and the same path. Later, no link is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from ._errors import ShellFolder, ShellPlace

PRIVATE = Path("/tmp")  # noqa: S108  the command's own, whatever is there outside
_LONGEST = 4_096
_LOGICAL = re.compile(r"(?!\.\.?(/|\Z))[^/\x00]+(/(?!\.\.?(/|\Z))[^/\x00]+)*\Z")
# Kernel interfaces, not files.
_NEVER = ("/proc", "/sys", "/dev")


@frozen
class Grounds:
    """What a command gets of the file system.

    Args:
        paths: real paths, each with `read` or `write`.
        folder: the working directory.
    """

    paths: Mapping[Path, str]
    folder: Path


def check_place(text: str) -> str:
    """The place as capabilities call it: resolved if it is absolute.

    Raises:
        ValueError: it can't name a place.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a path has at most {_LONGEST:,} characters")
    if "\x00" in text:
        raise ValueError("a path holds no NUL")
    if text.startswith(("/", "~/")):
        return os.path.realpath(Path(text).expanduser())
    if not (text == "." or _LOGICAL.match(text)):
        raise ValueError("give an absolute path, one that begins with `~/`, or one in `HOME/files` without `..`")
    return text


def places_of(read: Iterable[str], write: Iterable[str], cwd: str | None) -> dict[str, str]:
    """Each place of a request, with `read` or `write`. A working directory that lies in none is one to read."""
    modes = {**dict.fromkeys(read, "read"), **dict.fromkeys(write, "write")}
    if cwd is not None and not any(_is_in(cwd, place) for place in modes):
        modes[cwd] = "read"
    return modes


def find_places(modes: Mapping[str, str], cwd: str | None, home: Path, *, most: int) -> Grounds:
    """Find them all. It blocks on the file system.

    Args:
        modes: from ``places_of``.
        cwd: where the command works. Without it, in the folder that it has for itself.
        home: the host's folder.
        most: how many places there may be.

    Raises:
        ShellPlace: one is not there, no command may have it, or there are too many.
        ShellFolder: the working directory is no folder.
    """
    if len(modes) > most:
        raise ShellPlace(
            list(modes)[most],
            f"it would have more than {most}",
            hint="name a folder that holds several of them, or raise `max_places` in `[plugins.shell]`",
        )
    state = Path(os.path.realpath(home))
    paths = {_find(place, state): mode for place, mode in modes.items()}
    if cwd is None:
        return Grounds(paths, PRIVATE)
    folder = _find(cwd, state)
    if not folder.is_dir():
        raise ShellFolder(cwd, "it is no folder")
    return Grounds(paths, folder)


def _is_in(place: str, other: str) -> bool:
    if place.startswith("/") != other.startswith("/"):
        return False
    return other in {place, "."} or place.startswith(f"{other.rstrip('/')}/")


def _find(place: str, state: Path) -> Path:
    files = state / "files"
    if not place.startswith("/"):
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = files / place
    if not path.exists():
        raise ShellPlace(place, "there is nothing of that name")
    if os.path.realpath(path) != str(path):
        raise ShellPlace(place, "there is a link on the way")
    if not (path.is_dir() or path.is_file()):
        raise ShellPlace(place, "it is neither a folder nor a plain file")
    if place.startswith("/"):
        _check_outside(place, path, state)
    return path


def _check_outside(place: str, path: Path, state: Path) -> None:
    if path.is_relative_to(state) or state.is_relative_to(path):
        raise ShellPlace(place, "the host's own folder lies there; what is in `HOME/files` is named relative to it")
    if any(path.is_relative_to(never) for never in _NEVER):
        raise ShellPlace(place, "it is no folder of files")
