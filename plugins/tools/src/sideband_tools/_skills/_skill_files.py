"""Read files below a skill's folder and no others. The content of the folder is untrusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from sideband.state import open_beneath

from .._errors import SkillFileUnreadable

_LARGEST = 100_000
_MAX_FILES = 200
_MAX_LOOKED_AT = 2_000
_DEEPEST = 5


def read_text(skill: str, folder: Path, file: str) -> str:
    """Read a text file below ``folder``. A long file is truncated, with a note.

    Raises:
        SkillFileUnreadable: if it does not exist, leads out of the folder or through a link, or is not text.
    """
    try:
        with _opened(skill, folder, file) as descriptor:
            size = os.fstat(descriptor).st_size
            with os.fdopen(os.dup(descriptor), "rb") as opened:
                raw = opened.read(_LARGEST + 1)
    except OSError as error:
        if isinstance(error, SkillFileUnreadable):
            raise
        raise SkillFileUnreadable(skill, file, error.strerror or "system error") from None
    if b"\0" in raw:
        raise SkillFileUnreadable(skill, file, "not a text file")
    if len(raw) <= _LARGEST:
        return raw.decode(errors="replace")
    return f"{raw[:_LARGEST].decode(errors='ignore')}\n\n[truncated here: the file has {size:,} bytes]"


def list_files(folder: Path) -> list[str]:
    """List the relative paths of the files below ``folder``, sorted, without hidden files and links."""
    found: list[str] = []
    waiting, looked_at = [(folder, 0)], 0
    while waiting and len(found) < _MAX_FILES:
        current, depth = waiting.pop(0)
        try:
            entries = os.scandir(current)
        except OSError:
            continue
        with entries:
            for entry in entries:
                looked_at += 1
                if looked_at > _MAX_LOOKED_AT:
                    return sorted(found)[:_MAX_FILES]
                if entry.name.startswith((".", "__pycache__")):
                    continue
                if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
                    waiting.append((Path(entry.path), depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    found.append(Path(entry.path).relative_to(folder).as_posix())
    return sorted(found)[:_MAX_FILES]


@contextmanager
def _opened(skill: str, folder: Path, file: str) -> Iterator[int]:
    """Open a regular file below ``folder``. No component may be a link, even if the path changes meanwhile."""
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or "\0" in file:
        raise SkillFileUnreadable(skill, file, "not a relative path within the skill's folder")
    descriptor = open_beneath(Path(os.path.realpath(folder)), parts)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SkillFileUnreadable(skill, file, "not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)
