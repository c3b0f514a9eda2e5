"""Takes parts out of a property list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import PlistMissing

_OBJECTS = "$objects"


def extract(value: Any, wanted: Mapping[str, int | Sequence[int | str]]) -> dict[str, Any]:
    """What lies at each of the wanted places.

    Args:
        value: the property list.
        wanted: by the name that it gets: keys and indices from the outside in, or one index: of the list that the
            property list is, or of the objects of a keyed archive.

    Raises:
        PlistMissing: one of them is not there.
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
    # an index belongs to a list and a key to an object; a text has characters and no parts
    parts: Any = value if isinstance(value, list if isinstance(step, int) else dict) else {}
    return parts[step]
