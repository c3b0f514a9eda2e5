"""Maps a path to a file, and to the name that capabilities use for it.

A path without a leading `/` is a file in `SIDEBAND_HOME/files/`. For an absolute path (or one that begins with `~/`),
all symbolic links are resolved before it is compared with the grant, and it is then opened without following links, so
that a link cannot give one file the rights of another.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen
from sideband_confined_files import FileRefused, normal_path, recorded_path, resolved_path

from ._scope import FilesScope

Mode = Literal["read", "write"]


@frozen
class FileTarget:
    """The target of a path.

    Attributes:
        name: the name in capabilities, results and messages, without a trailing `/`.
        path: the path relative to the folder that contains it.
        system: whether it is outside the host's folder for files.
        folder: whether it was given as a folder, with a trailing `/`.
        folders: the recorded folders on the path, to which access is restricted.
    """

    name: str
    path: str
    system: bool
    folder: bool
    folders: Sequence[str] | None = None

    @property
    def hidden(self) -> bool:
        """Whether a component of the path begins with a dot."""
        return self.system and any(part.startswith(".") for part in self.path.split("/") if part != ".")

    def scope(self, mode: Mode, *, hidden: bool = False) -> FilesScope:
        """Return the scope that must be granted.

        Args:
            mode: the kind of access.
            hidden: whether hidden names below it are accessed too.
        """
        name = self.name
        if self.folder:
            name = "./" if name == "." else f"{name.rstrip('/')}/"
        return FilesScope(
            path=name,
            mode=mode,
            place="system" if self.system else "home",
            hidden="yes" if hidden or self.hidden else "no",
        )

    def below(self, path: str) -> str:
        """Return the name of a path below this folder."""
        return path if self.name == "." else f"{self.name.rstrip('/')}/{path}"


def locate(text: str, *, folder: bool = False, folders: Sequence[str] | None = None) -> FileTarget:
    """Return the target of a path.

    Args:
        text: the path.
        folder: whether to treat it as a folder, even without a trailing `/`.
        folders: the recorded folders on the path, if it is that of an earlier effect. It has no links then: following
            one that was added since would lead to another file.

    Raises:
        FileRefused: if the path leaves its folder, or has unsafe components.
    """
    folder = folder or text.endswith("/")
    if text.startswith(("/", "~/")):
        name = resolved_path(text) if folders is None else recorded_path(text)
        return FileTarget(name, name.lstrip("/") or ".", system=True, folder=folder or name == "/", folders=folders)
    name = normal_path(text)
    return FileTarget(name, name, system=False, folder=folder or name == ".", folders=folders)


def check_canonical(target: FileTarget, home: Path) -> None:
    """Check that a file of the host is not named by its absolute path, so that each file has one name.

    Aliases that this check cannot detect are rejected when the path is opened.

    Raises:
        FileRefused: if it is named by its absolute path.
    """
    files = Path(os.path.realpath(home)) / "files"
    if target.system and Path(target.name).is_relative_to(files):
        raise FileRefused(
            target.name,
            "files of the host must be named by their relative path",
            hint=f"use `{Path(target.name).relative_to(files)}`",
        )
