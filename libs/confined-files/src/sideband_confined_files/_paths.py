"""Normalize and validate paths before they are compared, walked or shown."""

from __future__ import annotations

import os
import re
import unicodedata

from ._errors import FileRefused

_DEEPEST = 16
_DEEPEST_ELSEWHERE = 64
_LONGEST_PART = 200
# PATH_MAX on Linux. Resolving a path takes time quadratic in its length.
_LONGEST = 4_096
_UNPORTABLE = re.compile(r"[\\:*?\"<>|]")
# control, format (such as bidirectional overrides), surrogate, line separator, paragraph separator
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def normal_path(path: str) -> str:
    """Return the normal form of a path below a folder, for files that the host owns and that may move to other systems.

    Args:
        path: components separated by ``/``. ``""`` and ``"."`` are the folder itself.

    Returns:
        The path with single slashes and no trailing one; ``"."`` for the folder itself.

    Raises:
        FileRefused: if the path is absolute, leads out of the folder, or has a component that is hidden, invisible or
            unsafe on some system.

    Example:
        >>> normal_path("reports//2026/may.csv")
        'reports/2026/may.csv'
    """
    if path.startswith(("/", "~")):
        raise FileRefused(path, "must be relative to the folder for files")
    if path in ("", "."):
        return "."
    parts = [part for part in path.split("/") if part]
    if not 0 < len(parts) <= _DEEPEST:
        raise FileRefused(path, f"expected 1 to {_DEEPEST} components, got {len(parts)}")
    for part in parts:
        _check_part(part, path)
    return "/".join(parts)


def _check_part(part: str, path: str) -> None:
    if part.startswith("."):
        problem = "leads out of the folder" if part == ".." else "is a hidden name"
        raise FileRefused(path, f"`{part}` {problem}")
    if _has_invisible(part):
        raise FileRefused(path, "it contains an invisible character")
    if part.endswith((" ", ".")) or _UNPORTABLE.search(part) or len(part.encode()) > _LONGEST_PART:
        raise FileRefused(path, "a component is too long or has characters that are not portable")
    if not unicodedata.is_normalized("NFC", part):
        raise FileRefused(path, "it is not NFC-normalized", hint="normalize the path to Unicode NFC")


def resolved_path(path: str) -> str:
    """Return an absolute path with all symbolic links resolved, the form in which grants name paths outside the host.

    The file system may change afterwards: walk the path without following links.

    Args:
        path: an absolute path, or one that begins with ``~/``. It need not exist.

    Raises:
        FileRefused: if the path is not absolute, too long, too deep, or contains an invisible character.

    Example:
        >>> resolved_path("/usr/../etc//hosts")
        '/etc/hosts'
    """
    _check_absolute(path)
    try:
        resolved = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111  a Path would drop what follows a `//`
    except OSError as error:
        # a link in the path was replaced between two system calls
        raise FileRefused(path, "it changed while being resolved", hint="try again") from error
    if _has_invisible(resolved):
        raise FileRefused(path, "it links to a path with an invisible character")
    _check_depth(resolved, path)
    return resolved


def recorded_path(path: str) -> str:
    """Return an absolute path that ``resolved_path`` has returned earlier, without resolving links again.

    Raises:
        FileRefused: as ``resolved_path``.
    """
    path = path.rstrip("/") or "/"
    _check_absolute(path, home=False)
    _check_depth(path, path)
    return path


def _check_absolute(path: str, *, home: bool = True) -> None:
    if not path.startswith(("/", "~/") if home else "/"):
        raise FileRefused(path, "must be absolute")
    if len(path) > _LONGEST:
        raise FileRefused(path, f"it exceeds the limit of {_LONGEST:,} characters")
    if _has_invisible(path):
        raise FileRefused(path, "it contains an invisible character")


def _check_depth(resolved: str, path: str) -> None:
    if resolved.count("/") > _DEEPEST_ELSEWHERE:
        raise FileRefused(path, f"it exceeds the limit of {_DEEPEST_ELSEWHERE} components")


def _has_invisible(text: str) -> bool:
    return any(unicodedata.category(character) in _INVISIBLE for character in text)


def parts_of(path: str) -> tuple[str, ...]:
    """Return the components of a path below a folder; an empty tuple for ``"."``.

    Raises:
        FileRefused: if a component is empty, ``.`` or ``..``: the path was not made by one of the functions above.
    """
    if path in ("", "."):
        return ()
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise FileRefused(path, "a component leads out of the folder")
    return parts
