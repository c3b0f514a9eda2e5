"""Factories of shapes: known types by name, and composed types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ._shape import Member, Shape
from ._value_types import (
    Anything,
    Array,
    Binary,
    Boolean,
    Date,
    DateTime,
    DecimalText,
    Integer,
    Nothing,
    Number,
    Object,
    Text,
    Time,
    UuidText,
    array_type,
    choice_type,
    distinct_type,
    fixed_type,
    mapping_type,
    structure_type,
    union_type,
)


def _simple(schema: Mapping[str, Any], known: Any, plain: str = "") -> Shape:
    return Shape(schema, lambda: known, plain)


ANYTHING = _simple({}, Anything)
NOTHING = _simple({"type": "null"}, Nothing)
OBJECT = _simple({"type": "object"}, Object)
_ARRAY = _simple({"type": "array"}, Array)
_TEXT = {"type": "string"}

KNOWN: dict[str, Shape] = {
    "str": _simple(_TEXT, Text),
    "int": _simple({"type": "integer"}, Integer),
    "float": _simple({"type": "number"}, Number),
    "bool": _simple({"type": "boolean"}, Boolean),
    "bytes": _simple({**_TEXT, "contentEncoding": "base64"}, Binary),
    "object": ANYTHING,
    "dict": OBJECT,
    "list": _ARRAY,
    "tuple": _ARRAY,
    "set": _simple({"type": "array", "uniqueItems": True}, Array, "a list"),
    "typing.Any": ANYTHING,
    "datetime.datetime": _simple({**_TEXT, "format": "date-time"}, DateTime, "text such as 2025-01-31T12:00:00"),
    "datetime.date": _simple({**_TEXT, "format": "date"}, Date, "text such as 2025-01-31"),
    "datetime.time": _simple({**_TEXT, "format": "time"}, Time, "text such as 12:00:00"),
    "decimal.Decimal": _simple(_TEXT, DecimalText, "text"),
    "uuid.UUID": _simple({**_TEXT, "format": "uuid"}, UuidText, "text"),
    "pathlib.Path": _simple(_TEXT, Text, "text"),
}
# aliases of these types; the capitalized ones are those of `typing`
SAME = {
    "frozenset": "set",
    "typing.Dict": "dict",
    "typing.FrozenSet": "set",
    "typing.List": "list",
    "typing.Set": "set",
    "typing.Text": "str",
    "typing.Tuple": "tuple",
    "typing.AbstractSet": "set",
    **{f"{module}.{name}": "list" for module in ("typing", "collections.abc") for name in ("Sequence", "Iterable",
        "Collection", "MutableSequence")},
    **{f"{module}.{name}": "dict" for module in ("typing", "collections.abc") for name in ("Mapping",
        "MutableMapping")},
    "collections.abc.Set": "set",
}  # fmt: skip


def union(options: list[Shape]) -> Shape:
    """Return the shape of a value of one of several types."""
    schemas: list[Mapping[str, Any]] = []
    for option in options:
        inner = option.schema.get("anyOf") if set(option.schema) == {"anyOf"} else [option.schema]
        schemas += [schema for schema in inner or () if schema not in schemas]
    plain = next((option.plain for option in options if option.plain), "")
    if {} in schemas:
        return Shape({}, ANYTHING.build, plain)
    return Shape({"anyOf": schemas} if len(schemas) > 1 else schemas[0], partial(union_type, options), plain)


def described(shape: Shape, text: str) -> Shape:
    """Return a shape with a description."""
    return Shape({**shape.schema, "description": text}, shape.build, shape.plain)


def choice(values: list[Any], plain: str = "") -> Shape:
    """Return the shape of one of these values."""
    schema: dict[str, Any] = {"enum": values}
    if all(isinstance(value, str) for value in values):
        schema = {"type": "string", **schema}
    return Shape(schema, partial(choice_type, values), plain)


def array(item: Shape) -> Shape:
    """Return the shape of a list with items of one type."""
    return Shape({"type": "array", "items": item.schema}, partial(array_type, item), item.plain)


def distinct(item: Shape) -> Shape:
    """Return the shape of a list with unique items of one type."""
    return Shape({"type": "array", "items": item.schema, "uniqueItems": True}, partial(distinct_type, item), "a list")


def fixed(items: list[Shape]) -> Shape:
    """Return the shape of a list with exactly these types, in this order."""
    schema = {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": len(items),
        "maxItems": len(items),
    }
    return Shape(schema, partial(fixed_type, items), next((item.plain for item in items if item.plain), ""))


def mapping(value: Shape) -> Shape:
    """Return the shape of an object with any keys and values of one type."""
    return Shape({"type": "object", "additionalProperties": value.schema}, partial(mapping_type, value), value.plain)


def structure(name: str, fields: Mapping[str, Member], plain: str) -> Shape:
    """Return the shape of an object with these keys and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field_name: inner.shape.schema for field_name, inner in fields.items()},
        "additionalProperties": False,
    }
    required = [field_name for field_name, inner in fields.items() if inner.required]
    if required:
        schema["required"] = required
    inner_plain = next((inner.shape.plain for inner in fields.values() if inner.shape.plain), "")
    return Shape(schema, partial(structure_type, name, fields), plain or inner_plain)
