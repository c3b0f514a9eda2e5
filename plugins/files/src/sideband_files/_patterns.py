"""Finds names by a pattern, folder by folder, without following links."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import from_thread, to_thread
from sideband_confined_files import ConfinedFolder, FileMissing, FileRefused, FolderEntry

from ._errors import FilesTooMany
from ._targets import FileTarget

_MAX_DEPTH = 64
_CHECK_INTERVAL = 100


async def search(
    folder: ConfinedFolder, target: FileTarget, pattern: str, *, limit: int, max_visited: int, hidden: bool
) -> tuple[list[tuple[str, FolderEntry]], bool]:
    """Return the matches below a folder with their relative paths, sorted per folder, and whether there are more.

    Raises:
        FileMissing: if the folder does not exist.
        FilesTooMany: if there are more than ``max_visited`` names.
    """
    wanted = [part for part in pattern.split("/") if part]
    found: list[tuple[str, FolderEntry]] = []
    visited = 0
    waiting: list[str] = [""]
    while waiting:
        below = waiting.pop()
        entries = await _names(
            folder, _join(target.path, below), max_visited - visited, hidden=hidden, is_root=not below
        )
        visited += len(entries)
        if visited > max_visited:
            raise FilesTooMany(target.name, max_visited)
        matching, deeper = await to_thread.run_sync(_filter, below, entries, wanted, limiter=folder.limiter)
        found += matching
        if len(found) > limit:
            return found[:limit], True
        waiting.extend(reversed(deeper))
    return found, False


def _filter(
    below: str, entries: Sequence[FolderEntry], wanted: Sequence[str]
) -> tuple[list[tuple[str, FolderEntry]], list[str]]:
    """Return the matches, and the folders to descend into. Runs in a thread, since the pattern is untrusted."""
    matching, deeper = [], []
    for number, entry in enumerate(entries):
        if number % _CHECK_INTERVAL == 0:
            from_thread.check_cancelled()
        path = f"{below}/{entry.name}" if below else entry.name
        parts = path.split("/")
        if matches(parts, wanted):
            matching.append((path, entry))
        if entry.kind == "folder" and len(parts) < _MAX_DEPTH and _may_match_below(parts, wanted):
            deeper.append(path)
    return matching, deeper


async def _names(
    folder: ConfinedFolder, path: str, limit: int, *, hidden: bool, is_root: bool
) -> Sequence[FolderEntry]:
    """Return the entries of a folder; if there are more than ``limit``, return one more than that."""
    try:
        return (await folder.list(path, limit=limit + 1, hidden=hidden)).entries
    except (FileMissing, FileRefused):
        if is_root:
            raise
        # the folder was removed or replaced after its parent was listed
        return ()


def _join(path: str, below: str) -> str:
    if not below:
        return path
    return below if path == "." else f"{path}/{below}"


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path matches: each component its own part of the pattern, ``**`` any number of components.

    Takes time proportional to the product of the lengths, for any pattern.

    Example:
        >>> matches(["a", "b", "x.csv"], ["**", "*.csv"])
        True
    """
    return len(pattern) in _positions(parts, pattern)


def _may_match_below(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path below a folder could match."""
    return any(position < len(pattern) for position in _positions(parts, pattern))


def _positions(parts: Sequence[str], pattern: Sequence[str]) -> set[int]:
    """Return the possible positions in the pattern after these components."""
    reached = _skip({0}, pattern)
    for part in parts:
        following = set()
        for position in reached:
            if position == len(pattern):
                continue
            if pattern[position] == "**":
                following.add(position)
            elif _matches_name(part, pattern[position]):
                following.add(position + 1)
        reached = _skip(following, pattern)
    return reached


def _skip(reached: set[int], pattern: Sequence[str]) -> set[int]:
    found = set(reached)
    for position in sorted(reached):
        beyond = position
        while beyond < len(pattern) and pattern[beyond] == "**":
            beyond += 1
            found.add(beyond)
    return found


def _matches_name(name: str, pattern: str) -> bool:
    """Return whether a name matches ``*`` (any characters) and ``?`` (one character), leftmost pieces first."""
    first, *rest = pattern.split("*")
    if not rest:
        return len(name) == len(first) and _matches_at(name, first, 0)
    *middle, last = rest
    at, end = len(first), len(name) - len(last)
    if at > end or not _matches_at(name, first, 0) or not _matches_at(name, last, end):
        return False
    for piece in middle:
        found = _find(name, piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _matches_at(name: str, piece: str, at: int) -> bool:
    if "?" not in piece:
        return name.startswith(piece, at)
    part = name[at : at + len(piece)]
    return len(part) == len(piece) and all(wanted in ("?", one) for wanted, one in zip(piece, part, strict=True))


def _find(name: str, piece: str, start: int, end: int) -> int:
    if "?" not in piece:
        return name.find(piece, start, end)
    return next((at for at in range(start, end - len(piece) + 1) if _matches_at(name, piece, at)), -1)
