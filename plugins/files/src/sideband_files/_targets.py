"""Which file a path means, and under which name capabilities know it.

A path without a leading `/` is a file in `HOME/files/`. An absolute one (or one that begins with `~/`) is resolved
through all symbolic links before it is compared with the grant, and then walked without following any, so that a link
can't lend one file the rights of another.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from attrs import frozen
from sideband_confined_files import FileRefused, normal_path, resolved_path

from ._scope import FilesScope

Mode = Literal["read", "write"]


@frozen
class FileTarget:
    """What a path means.

    Attributes:
        name: as capabilities, results and messages call it; without a `/` at its end.
        path: below the folder that it is in.
        system: whether it is outside the host's folder for files.
        folder: whether it was written as a folder, with a `/` at its end.
    """

    name: str
    path: str
    system: bool
    folder: bool

    @property
    def hidden(self) -> bool:
        """Whether a part of it begins with a dot."""
        return self.system and any(part.startswith(".") for part in self.path.split("/") if part != ".")

    def scope(self, mode: Mode, *, hidden: bool = False) -> FilesScope:
        """What must be granted to use it.

        Args:
            mode: what is done with it.
            hidden: whether that reaches hidden names below it too.
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
        """How a path below this folder is called."""
        return path if self.name == "." else f"{self.name.rstrip('/')}/{path}"


def locate(text: str, *, folder: bool = False) -> FileTarget:
    """What a path means.

    Args:
        text: the path.
        folder: whether a folder is meant, whether or not it ends with `/`.

    Raises:
        FileRefused: it leads elsewhere, or has parts that are unsafe.
    """
    folder = folder or text.endswith("/")
    if text.startswith(("/", "~/")):
        name = resolved_path(text)
        return FileTarget(name, name.lstrip("/") or ".", system=True, folder=folder or name == "/")
    name = normal_path(text)
    return FileTarget(name, name, system=False, folder=folder or name == ".")


def check_not_the_hosts(target: FileTarget, home: Path) -> None:
    """Let each file have one name. What is not caught here, since it has other names too, the walk refuses.

    Raises:
        FileRefused: it is in the host's folder for files, under its absolute path.
    """
    files = Path(os.path.realpath(home)) / "files"
    if target.system and Path(target.name).is_relative_to(files):
        raise FileRefused(
            target.name,
            "files of the host are not named by their absolute path",
            hint=f"name it `{Path(target.name).relative_to(files)}`",
        )
