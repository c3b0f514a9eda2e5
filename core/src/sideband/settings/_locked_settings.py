"""What the lock of an environment leaves of the settings of all other sources: they can only restrict it further."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ops import CapabilityInvalid, Grant
from ..plugins._lock import Lock
from ..sandboxing import Isolation
from ._byte_counts import parse_bytes
from ._policy import split_isolation

_Path = tuple[str, ...]
_MISSING = object()
_RESUME = ("never", "ask", "replay")
# The lock replaces them, since it contains the result: the plugins, and the package of each name.
_REPLACED = frozenset({"conflicts", "files", "order", "strict"})


def under_lock(
    merged: Mapping[str, Any], sources: Mapping[_Path, str], lock: Lock
) -> tuple[dict[str, Any], dict[_Path, str], str]:
    """Return the settings under a lock, the source of each key, and a notice about keys that are ignored, or nothing.

    Args:
        merged: the settings of all other sources.
        sources: the source of each of their keys.
        lock: the lock of the environment.
    """
    settings: dict[str, Any] = {}
    origins: dict[_Path, str] = {}
    for path, value in _keys(lock.settings):
        _put(settings, path, value)
        origins[path] = lock.file
    _put(settings, ("policy", "strict"), True)
    ignored: list[str] = []
    for path, source in sources.items():
        value, locked = _at(merged, path), _at(settings, path)
        result = value if _is_adjustable(path, lock) else _restricted(path, value, locked)
        if result is not _MISSING and result != locked:
            _put(settings, path, result)
            origins[path] = source
        if result != value and not (path == ("policy", "strict") and value):
            ignored.append(f"`{'.'.join(path)}` ({source})")
    if not ignored:
        return settings, origins, ""
    return settings, origins, f"ignored {', '.join(ignored)}: this environment is locked ({lock.file})"


def _restricted(path: _Path, value: Any, locked: Any) -> Any:
    """Return the value that is in force, or ``_MISSING`` for that of the lock."""
    section, key = path[0], path[1] if len(path) > 1 else ""
    if isinstance(locked, Mapping):
        return _MISSING  # a value cannot replace a table
    if section == "grants":
        return _narrowed(value, [] if locked is _MISSING else locked)
    is_free = section in ("skills", "dist", "agent", "tools") or (section == "policy" and key not in _REPLACED)
    if locked is _MISSING:
        return value if is_free else _MISSING
    try:
        return _STRICTER[key](locked, value) if key in _STRICTER_KEYS.get(section, ()) else locked
    except (TypeError, ValueError):
        return locked


def _narrowed(value: Any, locked: list[str]) -> Any:
    """Return the capabilities that the lock grants too."""
    held = Grant.parse(locked)
    try:
        given = [(text, Grant.parse([text])) for text in value]
    except (TypeError, AttributeError, CapabilityInvalid):
        return _MISSING
    narrowed = [text for text, grant in given if held.covers(grant)]
    return narrowed if narrowed or not given else (locked or _MISSING)


def _stricter_isolation(locked: str, value: str) -> str:
    one, other = split_isolation(locked), split_isolation(value)
    tier: Isolation = max(one[0], other[0])
    return f"{tier.label},call" if one[1] or other[1] else tier.label


def _less(locked: Any, value: Any) -> Any:
    return min(locked, value, key=parse_bytes if isinstance(locked, str) or isinstance(value, str) else None)


def _both(locked: list[str], value: list[str]) -> list[str]:
    return [*locked, *(one for one in value if one not in locked)]


_STRICTER: Mapping[str, Callable[[Any, Any], Any]] = {
    "isolation": _stricter_isolation,
    **dict.fromkeys(("guards", "disabled", "explicit"), _both),
    "require_open_secrets": lambda locked, value: locked is True or value is True,
    "resume": lambda locked, value: min(locked, value, key=_RESUME.index),
    **dict.fromkeys(
        ("deadlines", "timeout", "maximum_timeout", "memory", "maximum_memory", "workers", "idle_seconds"), _less
    ),
}
_STRICTER_KEYS = {
    "policy": _STRICTER.keys() - {"disabled", "explicit"},
    "tools": frozenset({"disabled", "explicit"}),
}


def _is_adjustable(path: _Path, lock: Lock) -> bool:
    return any(path[: len(words)] == words for words in (tuple(one.split(".")) for one in lock.adjustable))


def _keys(settings: Mapping[str, Any], path: _Path = ()) -> list[tuple[_Path, Any]]:
    """Return the keys with their values, at the depth at which sources are known."""
    found: list[tuple[_Path, Any]] = []
    for name, value in settings.items():
        here = (*path, name)
        found += _keys(value, here) if isinstance(value, Mapping) and len(here) < 3 else [(here, value)]
    return found


def _at(settings: Any, path: _Path) -> Any:
    for name in path:
        if not isinstance(settings, Mapping) or name not in settings:
            return _MISSING
        settings = settings[name]
    return settings


def _put(settings: dict[str, Any], path: _Path, value: Any) -> None:
    *tables, key = path
    for name in tables:
        if not isinstance(settings.get(name), dict):
            settings[name] = {}
        settings = settings[name]
    settings[key] = value
