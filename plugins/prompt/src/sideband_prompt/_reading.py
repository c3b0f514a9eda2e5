"""Read files of untrusted folders: never outside the folder, never too much, and without raising errors."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from attrs import frozen
from sideband_project_instructions import open_resolved, read_file, visible

_MAX_NAMES = 10_000


@frozen
class Reading:
    """The result of reading a file.

    Attributes:
        text: its visible text.
        notice: a remark for the reader of the text; empty if the file was read completely.
    """

    text: str = ""
    notice: str = ""

    @property
    def shown(self) -> str:
        """The text, followed by the notice."""
        return "\n\n".join(filter(None, (self.text, self.notice and f"[{self.notice}]")))


def is_inside(name: str) -> bool:
    """Return whether a relative path with ``/`` stays below its start, not considering links.

    Example:
        >>> is_inside("api/index.md"), is_inside("../keys"), is_inside("/etc/passwd")
        (True, False, False)
    """
    path = PurePosixPath(name)
    return bool(path.parts) and name.isprintable() and not path.is_absolute() and ".." not in path.parts


def read_text(root: Path, name: str, limit: int) -> Reading | None:
    """Read the first ``limit`` bytes of a file below ``root``. Return ``None`` if it does not exist.

    Invalid UTF-8 is replaced. A link out of ``root``, an irregular file and one that cannot be read result in a
    notice.
    """
    found = read_file(root, name, limit)
    if found is None or found.problem:
        return None if found is None else Reading(notice=f"{name} was not read: {found.problem}")
    content = found.content
    text = visible(content[:limit].decode("utf-8-sig", errors="replace")).strip()
    cut = len(content) > limit
    return Reading(text, f"{name} is truncated here at {limit:,} bytes" if cut else "")


def list_names(root: Path, name: str) -> tuple[str, ...]:
    """List a folder below ``root``, sorted, without hidden names. Return an empty tuple if it cannot be read."""
    try:
        descriptor = open_resolved(root, name, os.O_DIRECTORY)
    except OSError:
        return ()
    try:
        with os.scandir(descriptor) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_NAMES), strict=False)]
    except OSError:
        return ()
    finally:
        os.close(descriptor)
    return tuple(sorted(one for one in names if not one.startswith(".") and one.isprintable()))
