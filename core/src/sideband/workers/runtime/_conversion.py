"""Convert values of skills to JSON data, or say which part of a value cannot be sent and what to return instead.

The encoder refuses everything but JSON data and bytes; only then is a message converted here. Classes are recognized by
their names, so that nothing is imported for a value that a skill never returns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, NoReturn

from ._codec import MAX_FRAME, MAX_NESTING, MAX_VALUES, NotJson, TooLarge, Unsendable, encode

_MAX_ARRAY_BYTES = 4 * MAX_FRAME
_MAX_INTEGER_BITS = 14_000
_MAX_KEY = 80
_MAX_PARTS = 20
_KEY = object()
_BASIC = (str, int, float, bytes, bytearray, memoryview, type(None))
_REMEDIES = {
    ("builtins", "complex"): "return its real and imaginary parts",
    ("datetime", "timedelta"): "return its `total_seconds()`",
    ("numpy", "timedelta64"): "return a number of seconds",
    ("numpy", "complexfloating"): "return its real and imaginary parts",
    ("pandas", "DataFrame"): 'return its `to_dict("records")`',
    ("pandas", "Series"): "return its `tolist()`, or its `to_dict()` to keep the index",
    ("polars", "DataFrame"): "return its `to_dicts()`",
}
_CONVERSIONS = ("to_dict", "to_list", "tolist", "_asdict", "isoformat")

Path = tuple[Any, ...]
"""The keys and indexes that lead to a value."""


def encode_converted(message: Callable[[Any], dict[str, Any]], value: Any) -> bytes:
    """Encode ``message(value)``. Convert the value only if it is not JSON data.

    Raises:
        Unsendable: if it cannot be sent.
    """
    try:
        return encode(message(value))
    except NotJson:
        return encode(message(converted(value)))


def converted(value: Any) -> Any:
    """Return a value as JSON data and bytes.

    Raises:
        Unsendable: if a part of it cannot be converted, which the message names, or it has too many values.
    """
    return _Conversion().value(value, (), 0)


class _Conversion:
    """The conversion of one message. Its values are counted before they are created."""

    def __init__(self) -> None:
        self._room = MAX_VALUES

    def value(self, value: Any, path: Path, depth: int) -> Any:
        """Return a value as JSON data and bytes."""
        if depth > MAX_NESTING:
            raise Unsendable(f"it is nested deeper than {MAX_NESTING} levels")
        if isinstance(value, _BASIC):
            _check_basic(value, path)
            return value
        if isinstance(value, dict):
            return self._object(value, path, depth)
        if isinstance(value, (list, tuple)):
            self._count(len(value), path)
            return [self.value(item, (*path, index), depth + 1) for index, item in enumerate(value)]
        return self.value(self._simpler(value, path), path, depth + 1)

    def _count(self, values: int, path: Path) -> None:
        self._room -= values
        if self._room < 0:
            raise TooLarge(f"{_name(path)} has too many values: a message has at most {MAX_VALUES:,}")

    def _object(self, value: dict[Any, Any], path: Path, depth: int) -> dict[str, Any]:
        self._count(len(value), path)
        found: dict[str, Any] = {}
        for key, item in value.items():
            text = self._key(key, path)
            if text in found:
                _refuse(path, f"has two keys that are {_shown(text)} as text", "rename one")
            found[text] = self.value(item, (*path, text), depth + 1)
        return found

    def _key(self, key: Any, path: Path) -> str:
        inner = (*path, _KEY)
        while not isinstance(key, (str, int, float, type(None))):
            if isinstance(key, (bytes, bytearray, memoryview, tuple)):
                _refuse(path, f"has a key of type `{_type(key)}`", "use text as keys")
            key = self._simpler(key, inner)
        _check_basic(key, inner)
        return str.__str__(key) if isinstance(key, str) else json.dumps(key)

    def _simpler(self, value: Any, path: Path) -> Any:
        """Return an equivalent value of a simpler type."""
        for base in type(value).__mro__:
            name = (str(base.__module__).partition(".")[0], base.__qualname__)
            if name in _REMEDIES:
                _refuse(path, f"is of type `{_type(value)}`, which cannot be sent", _REMEDIES[name])
            if name in _BY_CLASS:
                return _BY_CLASS[name](value, path, self._room)
        if isinstance(value, (AbstractSet, Sequence, ValuesView)):
            return self._items(value, path)
        if isinstance(value, Mapping):
            self._count(len(value), path)
            return dict(value)
        return {name: getattr(value, name) for name in _fields(value, path)}

    def _items(self, value: Iterable[Any], path: Path) -> list[Any]:
        found = list(islice(value, self._room + 1))
        if len(found) > self._room:
            self._count(len(found), path)
        if not isinstance(value, (set, frozenset)):
            return found
        try:
            # The order of a set differs between processes.
            return sorted(found)
        except TypeError:
            return found


def _fields(value: Any, path: Path) -> list[str]:
    """Return the names of the fields of a dataclass or attrs class."""
    if not isinstance(value, type) and hasattr(value, "__dataclass_fields__"):
        from dataclasses import fields  # noqa: PLC0415  it is loaded if there is a dataclass

        return [field.name for field in fields(value)]
    if not isinstance(value, type) and hasattr(value, "__attrs_attrs__"):
        return [attribute.name for attribute in value.__attrs_attrs__]
    return _refuse_type(value, path)


def _array(value: Any, path: Path, room: int) -> Any:
    size = int(value.size)
    if size > room or value.nbytes > _MAX_ARRAY_BYTES:
        problem = f"has too many values: an array of {size:,}, but a message has at most {MAX_VALUES:,}"
        raise TooLarge(f"{_name(path)} {problem}")
    if getattr(value, "ndim", 1) == 0:
        return value[()]
    # Only for these types, `tolist` returns Python objects with the same meaning.
    return value.tolist() if getattr(value.dtype, "kind", "O") in "biufUS" else list(islice(value, size))


def _scalar(value: Any, path: Path, _room: int) -> Any:
    kind = value.dtype.kind
    if kind == "f":
        # `item` of a long double is a long double.
        return float(value)
    if kind == "M":
        return _missing(value, path) if str(value) == "NaT" else str(value)
    if kind == "V" and value.dtype.names:
        return dict(zip(value.dtype.names, value, strict=True))
    return value.item()


def _missing(value: object, path: Path, _room: int = 0) -> NoReturn:
    _refuse(path, f"is `{_type(value)}`, a missing value", "replace it with `None`")


def _decimal(value: Any, path: Path, _room: int) -> str:
    if not value.is_finite():
        _refuse(path, f"is {value}, which JSON cannot represent", "replace it with `None`")
    return str(value)


def _isoformat(value: Any, _path: Path, _room: int) -> Any:
    return value.isoformat()


def _enumeration(value: Any, _path: Path, _room: int) -> Any:
    return value.value


def _model(value: Any, _path: Path, _room: int) -> Any:
    # Models of the old API have no `model_dump`.
    return value.model_dump() if hasattr(value, "model_dump") else value.dict()


def _text(value: object, _path: Path, _room: int) -> str:
    return str(value)


_BY_CLASS: Mapping[tuple[str, str], Callable[[Any, Path, int], Any]] = {
    ("datetime", "date"): _isoformat,
    ("datetime", "time"): _isoformat,
    ("decimal", "Decimal"): _decimal,
    ("enum", "Enum"): _enumeration,
    ("numpy", "generic"): _scalar,
    ("numpy", "ndarray"): _array,
    ("pandas", "ExtensionArray"): _array,
    ("pandas", "Index"): _array,
    ("pandas", "NAType"): _missing,
    ("pandas", "NaTType"): _missing,
    ("pathlib", "PurePath"): _text,
    ("pydantic", "BaseModel"): _model,
    ("uuid", "UUID"): _text,
}


def _check_basic(value: Any, path: Path) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse(path, "has a lone surrogate, which UTF-8 cannot encode", "decode it with `errors='replace'`")
    elif isinstance(value, float) and not math.isfinite(value):
        kind = "NaN" if math.isnan(value) else "infinite"
        _refuse(path, f"is {kind}, which JSON cannot represent", "replace it with `None`")
    elif isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        _refuse(path, "is an integer with thousands of digits", "return it as text")


def _refuse_type(value: Any, path: Path) -> NoReturn:
    if hasattr(value, "__await__"):
        _refuse(path, f"is of type `{_type(value)}`, which was not awaited", "add `await`")
    if hasattr(value, "__next__") or hasattr(value, "__anext__"):
        _refuse(path, f"is of type `{_type(value)}`, which cannot be sent", "return a list of its items")
    method = next((name for name in _CONVERSIONS if hasattr(value, name)), None)
    remedy = f"return its `{method}()`" if method else "return text, numbers, lists and dicts made from it"
    _refuse(path, f"is of type `{_type(value)}`, which cannot be sent", remedy)


def _refuse(path: Path, problem: str, remedy: str) -> NoReturn:
    raise Unsendable(f"{_name(path)} {problem}; {remedy}")


def _type(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _name(path: Path) -> str:
    """Return the path to a value as code, such as `rows[3].price`."""
    if path and path[-1] is _KEY:
        return f"a key of {_name(path[:-1])}" if path[:-1] else "a key"
    text = "".join(f"[{part}]" if isinstance(part, int) else _step(part) for part in path[:_MAX_PARTS])
    return f"`{text.removeprefix('.')}{'…' if len(path) > _MAX_PARTS else ''}`" if path else "it"


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() and len(key) <= _MAX_KEY else f"[{_shown(key)}]"


def _shown(key: str) -> str:
    # A part of a key could be a part of a secret, which the host would not recognize.
    return json.dumps(key, ensure_ascii=False) if len(key) <= _MAX_KEY else f"a key of {len(key):,} characters"
