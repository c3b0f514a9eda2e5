"""Read files of untrusted folders: never outside the folder, never too much, and without raising errors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen
from sideband.state import open_beneath

MAX_SIZE = 1 << 20
"""The most bytes that an instruction file may have."""

_NOT_HIDDEN = frozenset({".agents", ".claude", ".cursor", ".cursorrules", ".github", ".sideband"})


@frozen
class FileContent:
    """The result of reading a file.

    Attributes:
        content: its bytes.
        problem: why it was not read; empty if it was.
    """

    content: bytes = b""
    problem: str = ""


def read_file(root: Path, name: str, limit: int) -> FileContent | None:
    """Read a file below ``root``, at most one byte more than the limit. Return ``None`` if it does not exist.

    A link out of ``root`` or to a hidden file, an irregular file and one that cannot be read result in a problem.
    """
    try:
        descriptor = open_resolved(root, name, os.O_RDONLY)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return FileContent(problem="not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return FileContent(file.read(limit + 1))
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return FileContent(problem=getattr(error, "strerror", None) or str(error))


def open_resolved(root: Path, name: str, flags: int) -> int:
    """Open the file that ``name`` resolves to, which is below ``root`` even if links change meanwhile.

    Raises:
        PermissionError: if it leads out of ``root``, or over a link to a hidden file.
        OSError: if it cannot be opened.
    """
    top = os.path.realpath(root)
    target = os.path.realpath(Path(top, name))
    if not Path(target).is_relative_to(top):
        raise PermissionError("it leads out of its folder")
    parts = Path(target).relative_to(top).parts
    if hidden_parts(parts) - set(Path(name).parts):
        raise PermissionError("it leads to a hidden file")  # such as `.env`
    # all links are resolved, so a link found now has been created since
    return open_beneath(Path(top), parts, flags)


def hidden_parts(parts: Iterable[str]) -> set[str]:
    """Return the parts of a path that hide a file. Folders such as `.github` do not."""
    return {part for part in parts if part.startswith(".") and part not in _NOT_HIDDEN}
