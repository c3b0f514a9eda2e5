"""Reads files of folders that others may write to: never outside of the folder, never too much, never fatal."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from attrs import frozen
from sideband.state import open_beneath

from ._text import visible

_MOST_NAMES = 10_000


@frozen
class Reading:
    """What came of reading a file.

    Attributes:
        text: what can be seen of it.
        notice: what somebody who only sees the text should know; empty if it is the whole file.
    """

    text: str = ""
    notice: str = ""

    @property
    def shown(self) -> str:
        """The text, and the notice below it."""
        return "\n\n".join(filter(None, (self.text, self.notice and f"[{self.notice}]")))


def is_inside(name: str) -> bool:
    """Whether a relative path, written with ``/``, stays below where it begins, whatever links there are.

    Example:
        >>> is_inside("api/index.md"), is_inside("../keys"), is_inside("/etc/passwd")
        (True, False, False)
    """
    path = PurePosixPath(name)
    return bool(path.parts) and name.isprintable() and not path.is_absolute() and ".." not in path.parts


def read_text(root: Path, name: str, limit: int) -> Reading | None:
    """The first ``limit`` bytes of a file below ``root``, or ``None`` if there is none.

    What is no UTF-8 is replaced. A link that leads out of ``root``, something that is no regular file, and what can't
    be read at all are a notice.
    """
    try:
        descriptor = open_resolved(root, name, os.O_RDONLY)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Reading(notice=f"{name} was not read: it is no regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(limit + 1)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Reading(notice=f"{name} was not read: {error.strerror or error}")
    text = visible(content[:limit].decode("utf-8-sig", errors="replace")).strip()
    cut = len(content) > limit
    return Reading(text, f"{name} is cut here: it has more than {limit:,} bytes" if cut else "")


def list_names(root: Path, name: str) -> tuple[str, ...]:
    """The names in a folder below ``root``, sorted, without hidden ones; none if it can't be read."""
    try:
        descriptor = open_resolved(root, name, os.O_DIRECTORY)
    except OSError:
        return ()
    try:
        with os.scandir(descriptor) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return ()
    finally:
        os.close(descriptor)
    return tuple(sorted(one for one in names if not one.startswith(".") and one.isprintable()))


def open_resolved(root: Path, name: str, flags: int) -> int:
    """A descriptor of what ``name`` leads to, which is below ``root`` even if links are changed meanwhile.

    Raises:
        PermissionError: it leads out of ``root``.
        OSError: it can't be opened.
    """
    top = os.path.realpath(root)
    target = os.path.realpath(Path(top, name))
    if not Path(target).is_relative_to(top):
        raise PermissionError("it leads out of its folder")
    # The links are resolved already. One that is met now was put there since.
    return open_beneath(Path(top), Path(target).relative_to(top).parts, flags)
