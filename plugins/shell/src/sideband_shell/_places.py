"""The folders and files that a program may access, and its working directory.

A place without a leading `/` is relative to `SIDEBAND_HOME/files/`, where the family `files` stores working files.
Other places are absolute, and symbolic links are resolved when the parameters are parsed: the same path is compared
with the grant, shown to the user, recorded and passed to the sandbox. After that, no link is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from ._errors import ShellFolder, ShellPlace

PRIVATE = Path("/tmp")  # noqa: S108  the program's own, not that of the machine
_LONGEST = 4_096
_LOGICAL = re.compile(r"(?!\.\.?(/|\Z))[^/\x00]+(/(?!\.\.?(/|\Z))[^/\x00]+)*\Z")
# Folders of the host whose folders are named by a digest: the packages of scripts, and snapshots of skills.
_PUBLISHED = ("envs", "skills")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
# Kernel interfaces, not files.
_NEVER = ("/proc", "/sys", "/dev")


@frozen
class ResolvedPlaces:
    """The places and the working directory of a program.

    Args:
        paths: the real paths, each with `read`, `write` or `execute`.
        folder: the working directory.
    """

    paths: Mapping[Path, str]
    folder: Path


def check_place(text: str) -> str:
    """Return the place in the form that capabilities use, with symbolic links resolved if it is absolute.

    Raises:
        ValueError: if it is not a valid place.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a path must have at most {_LONGEST:,} characters, got {len(text):,}")
    if "\x00" in text:
        raise ValueError("a path must not contain NUL")
    if text.startswith(("/", "~/")):
        return os.path.realpath(Path(text).expanduser())
    if not (text == "." or _LOGICAL.match(text)):
        raise ValueError(
            "expected a path that is absolute, begins with `~/`, or is relative to `SIDEBAND_HOME/files` without `..`"
        )
    return text


def places_of(read: Iterable[str], write: Iterable[str], execute: Iterable[str], cwd: str | None) -> dict[str, str]:
    """Return each place with its last mode. A working directory outside of all places is added with `read`."""
    modes = {**dict.fromkeys(read, "read"), **dict.fromkeys(write, "write"), **dict.fromkeys(execute, "execute")}
    if cwd is not None and not any(_is_in(cwd, place) for place in modes):
        modes[cwd] = "read"
    return modes


def find_places(modes: Mapping[str, str], cwd: str | None, home: Path, *, maximum: int) -> ResolvedPlaces:
    """Check the places. Blocks on the file system.

    Args:
        modes: the result of ``places_of``.
        cwd: the working directory; the program's temporary folder if ``None``.
        home: the host's folder.
        maximum: the maximum number of places.

    Raises:
        ShellPlace: if a place does not exist or is forbidden, or there are too many.
        ShellFolder: if the working directory is not a folder.
    """
    if len(modes) > maximum:
        raise ShellPlace(
            list(modes)[maximum],
            f"a program can have at most {maximum} places, got {len(modes)}",
            hint="name a folder that contains several of them, or raise `max_places` in `[plugins.shell]`",
        )
    state = Path(os.path.realpath(home))
    paths = {_find(place, state, mode): mode for place, mode in modes.items()}
    if cwd is None:
        return ResolvedPlaces(paths, PRIVATE)
    folder = _find(cwd, state, "read")
    if not folder.is_dir():
        raise ShellFolder(cwd, "it is not a folder")
    return ResolvedPlaces(paths, folder)


def _is_in(place: str, other: str) -> bool:
    if place.startswith("/") != other.startswith("/"):
        return False
    return other in {place, "."} or place.startswith(f"{other.rstrip('/')}/")


def _find(place: str, state: Path, mode: str) -> Path:
    files = state / "files"
    if not place.startswith("/"):
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = files / place
    if not path.exists():
        raise ShellPlace(place, "it does not exist")
    if os.path.realpath(path) != str(path):
        raise ShellPlace(place, "its path contains a symbolic link")
    if not (path.is_dir() or path.is_file()):
        raise ShellPlace(place, "it is neither a folder nor a regular file")
    if place.startswith("/") and not (mode == "read" and _is_published(path, state)):
        _check_outside(place, path, state)
    return path


def _is_published(path: Path, state: Path) -> bool:
    """Return whether it is a folder of packages or of one skill, which has no secrets and may be read."""
    return path.parent in [state / name for name in _PUBLISHED] and bool(_DIGEST.match(path.name))


def _check_outside(place: str, path: Path, state: Path) -> None:
    if any(path.is_relative_to(own) or own.is_relative_to(path) for own in _own_folders(state)):
        raise ShellPlace(place, "it overlaps the host's own folder; paths in `SIDEBAND_HOME/files` must be relative")
    if any(path.is_relative_to(never) for never in _NEVER):
        raise ShellPlace(place, "it is in a kernel file system")


def _own_folders(state: Path) -> tuple[Path, ...]:
    """Return the host's folder, and the default one, which contains the common locks of the user's hosts."""
    try:
        return (state, Path(os.path.realpath(Path.home() / ".sideband")))
    except RuntimeError:  # the user has no home directory
        return (state,)
