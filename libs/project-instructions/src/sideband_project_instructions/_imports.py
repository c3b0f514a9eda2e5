"""Files that instructions name, such as ``@docs/git.md``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ._confined import hidden_parts

_NAMED = re.compile(r"(?<!\S)@((?:[^\s\\]|\\ )+)")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_TICKS = re.compile("`+")
_AFTER_NAME = ".,;:!?)\"'"


def named_files(text: str) -> list[str]:
    """Return the paths that a text names after ``@``, as written. Code names no files.

    Example:
        >>> named_files("See @docs/git.md, `@pytest.fixture` and ada@example.org.")
        ['docs/git.md']
    """
    words = (word for line in _prose(text) for word in _NAMED.findall(line))
    found = (word.replace("\\ ", " ").rstrip(_AFTER_NAME) for word in words)
    return list(dict.fromkeys(filter(str.strip, found)))


def _prose(text: str) -> Iterator[str]:
    """Yield the parts of lines that are not code."""
    fence = ""
    for line in text.split("\n"):
        mark = found[1] if (found := _FENCE.match(line)) else ""
        if fence:
            fence = "" if mark.startswith(fence) else fence
        elif mark:
            fence = mark
        else:
            yield " ".join(_TICKS.split(line)[::2])


def resolved_name(root: Path, folder: Path, name: str) -> tuple[str, str]:
    """Return the path below ``root`` that a name in a file of ``folder`` means, and why it is not used, if it is not.

    Both are empty if it means nothing.
    """
    # `expanduser` of pathlib raises an exception without a home folder.
    path = Path(os.path.expanduser(name) if name.startswith("~/") else name)  # noqa: PTH111
    parts: list[str] = []
    for part in (folder / path).parts:
        if part == "..":
            parts = parts[: max(1, len(parts) - 1)]
        else:
            parts.append(part)
    target = Path(*parts)
    if not target.is_relative_to(root):
        # A word such as `@/tmp` that means no file is not reported.
        return "", "outside of the project" if _is_file(target) else ""
    relative = PurePosixPath(target.relative_to(root))
    if not relative.parts or not _is_file(target):
        return "", ""
    if hidden_parts(relative.parts):
        return "", "a hidden file"  # such as `.env`
    return str(relative), ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name that is too long
        return False
