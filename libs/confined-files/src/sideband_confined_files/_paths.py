"""The one form in which a path is compared, walked and shown."""

from __future__ import annotations

import os
import re
import unicodedata

from ._errors import FileRefused

_DEEPEST = 16
_DEEPEST_ELSEWHERE = 64
_LONGEST_PART = 200
# The system takes no longer path, and resolving one takes time by the square of its length.
_LONGEST = 4_096
_UNPORTABLE = re.compile(r"[\\:*?\"<>|]")
# control, format (turns the direction of writing), half a character, separators of lines and paragraphs
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def normal_path(path: str) -> str:
    """The one form of a path below a folder, for files that belong to the host and may move to other systems.

    Args:
        path: parts with a ``/`` between them. ``""`` and ``"."`` are the folder itself.

    Returns:
        The same, with one ``/`` between two parts and none at the end; ``"."`` for the folder itself.

    Raises:
        FileRefused: it is absolute, leads out of the folder, or has a part that is hidden, invisible or unsafe on
            some system.

    Example:
        >>> normal_path("reports//2026/may.csv")
        'reports/2026/may.csv'
    """
    if path.startswith(("/", "~")):
        raise FileRefused(path, "it does not begin in the folder for files")
    if path in ("", "."):
        return "."
    parts = [part for part in path.split("/") if part]
    if not 0 < len(parts) <= _DEEPEST:
        raise FileRefused(path, f"it has {len(parts)} parts, not 1 to {_DEEPEST}")
    for part in parts:
        _check_part(part, path)
    return "/".join(parts)


def _check_part(part: str, path: str) -> None:
    if part.startswith("."):
        raise FileRefused(path, f"`{part}` is hidden or leads elsewhere")
    if _has_invisible(part):
        raise FileRefused(path, "it has a character that can't be seen")
    if part.endswith((" ", ".")) or _UNPORTABLE.search(part) or len(part.encode()) > _LONGEST_PART:
        raise FileRefused(path, "a part of it is too long, or has characters that not all systems take")
    if not unicodedata.is_normalized("NFC", part):
        raise FileRefused(path, "it writes a character in two parts", hint="give the path in Unicode's normal form NFC")


def resolved_path(path: str) -> str:
    """An absolute path with all symbolic links resolved: the form in which grants name places outside the host.

    What is there may change afterwards: walk it without following links.

    Args:
        path: an absolute path, or one that begins with ``~/``. What it names need not be there.

    Raises:
        FileRefused: it is not absolute, too long or deep, or has a character that can't be seen.

    Example:
        >>> resolved_path("/usr/../etc//hosts")
        '/etc/hosts'
    """
    if not path.startswith(("/", "~/")):
        raise FileRefused(path, "it is not absolute")
    if len(path) > _LONGEST:
        raise FileRefused(path, f"it has more than {_LONGEST:,} characters")
    if _has_invisible(path):
        raise FileRefused(path, "it has a character that can't be seen")
    try:
        resolved = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111  a Path would drop what follows a `//`
    except OSError as error:
        # a link on the way became something else between two looks at it
        raise FileRefused(path, "it changes while it is looked at", hint="try again") from error
    if _has_invisible(resolved):
        raise FileRefused(path, "it is a link to a path with a character that can't be seen")
    if resolved.count("/") > _DEEPEST_ELSEWHERE:
        raise FileRefused(path, f"it has more than {_DEEPEST_ELSEWHERE} parts")
    return resolved


def _has_invisible(text: str) -> bool:
    return any(unicodedata.category(character) in _INVISIBLE for character in text)


def parts_of(path: str) -> tuple[str, ...]:
    """The steps of a path below a folder; none for ``"."``.

    Raises:
        FileRefused: a step is none, or leads elsewhere. Whoever made the path has not used one of the functions above.
    """
    if path in ("", "."):
        return ()
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise FileRefused(path, "a part of it leads elsewhere")
    return parts
