"""Extracts parts of a property list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import PlistMissing

_OBJECTS = "$objects"


def extract(value: Any, wanted: Mapping[str, int | Sequence[int | str]]) -> dict[str, Any]:
    """Return the value at each path.

    Args:
        value: the property list.
        wanted: the paths by name. A path is a list of keys and indices, or a single index into the top-level list or
            into the objects of a keyed archive.

    Raises:
        PlistMissing: if a path does not exist.
    """
    return {name: _part(value, path, name) for name, path in wanted.items()}


def _part(value: Any, path: int | Sequence[int | str], name: str) -> Any:
    if isinstance(path, int):
        is_archive = isinstance(value, dict) and isinstance(value.get(_OBJECTS), list)
        path = [_OBJECTS, path] if is_archive else [path]
    for step in path:
        try:
            value = _step(value, step)
        except LookupError:
            raise PlistMissing(name, str(step)[:100]) from None
    return value


def _step(value: Any, step: int | str) -> Any:
    # an index applies to lists only and a key to objects only; in particular, text cannot be indexed
    parts: Any = value if isinstance(value, list if isinstance(step, int) else dict) else {}
    return parts[step]
