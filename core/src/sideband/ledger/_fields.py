"""The conversion of ledger fields to and from JSON, for types that JSON does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import attrs

from ..ops import Level, Origin
from ._bytes import revive

_ORIGIN = tuple(one.name for one in attrs.fields(Origin) if one.name != "channel")
_origin_values = attrgetter(*_ORIGIN)


def write_origin(origin: Origin) -> dict[str, str]:
    """Return an origin as JSON data, without those fields that have no value."""
    values = _origin_values(origin)
    return {name: value for name, value in zip(_ORIGIN, values, strict=True) if value is not None}


def _read_origin(stored: Mapping[str, Any]) -> Origin:
    return Origin(**{name: stored[name] for name in _ORIGIN if name in stored})


_WRITE: dict[str, Callable[[Any], Any]] = {
    "level": attrgetter("name"),
    "ms": lambda milliseconds: round(milliseconds, 3),
    "origin": write_origin,
}
_READ: dict[str, Callable[[Any], Any]] = {
    "decisions": tuple,
    "grant": tuple,
    "granted_by": tuple,
    "level": lambda name: Level.__members__.get(str(name)),
    "note": revive,
    "origin": _read_origin,
    "params": revive,
    "result": revive,
    "rights": tuple,
    "time": str,
}
# These are empty for most effects.
_OMITTED_WHEN_EMPTY = frozenset({"code", "decisions", "granted_by", "note", "params_digest"})


def line_fields(kind: str, record: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a line of this kind, in order, without those that have no value."""
    fields: dict[str, Any] = {"kind": kind}
    for name in names:
        value = getattr(record, name)
        if value is None or (not value and name in _OMITTED_WHEN_EMPTY):
            continue
        write = _WRITE.get(name)
        fields[name] = value if write is None else write(value)
    return fields


def read_fields(kind: type[attrs.AttrsInstance], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the converted values of those fields of the attrs class ``kind`` that are stored."""
    return {
        name: stored[name] if (read := _READ.get(name)) is None else read(stored[name])
        for name in attrs.fields_dict(kind)
        if name in stored
    }
