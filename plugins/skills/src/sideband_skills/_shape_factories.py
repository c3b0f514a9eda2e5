"""Factories of shapes: known types by name, and composed types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._shape import Member, Shape

ANYTHING = Shape({}, "anything")
NOTHING = Shape({"type": "null"}, "nothing")
OBJECT = Shape({"type": "object"}, "object")
_ARRAY = Shape({"type": "array"}, "array")
_TEXT = {"type": "string"}

KNOWN: dict[str, Shape] = {
    "str": Shape(_TEXT, "text"),
    "int": Shape({"type": "integer"}, "integer"),
    "float": Shape({"type": "number"}, "number"),
    "bool": Shape({"type": "boolean"}, "boolean"),
    "bytes": Shape({**_TEXT, "contentEncoding": "base64"}, "bytes"),
    "object": ANYTHING,
    "dict": OBJECT,
    "list": _ARRAY,
    "tuple": _ARRAY,
    "set": Shape({"type": "array", "uniqueItems": True}, "array", "a list"),
    "typing.Any": ANYTHING,
    "datetime.datetime": Shape({**_TEXT, "format": "date-time"}, "datetime", "text such as 2025-01-31T12:00:00"),
    "datetime.date": Shape({**_TEXT, "format": "date"}, "date", "text such as 2025-01-31"),
    "datetime.time": Shape({**_TEXT, "format": "time"}, "time", "text such as 12:00:00"),
    "decimal.Decimal": Shape(_TEXT, "decimal", "text"),
    "uuid.UUID": Shape({**_TEXT, "format": "uuid"}, "uuid", "text"),
    "pathlib.Path": Shape(_TEXT, "text", "text"),
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
        return Shape({}, ANYTHING.form, plain)
    return Shape(
        {"anyOf": schemas} if len(schemas) > 1 else schemas[0], ["union", [option.form for option in options]], plain
    )


def described(shape: Shape, text: str) -> Shape:
    """Return a shape with a description."""
    return Shape({**shape.schema, "description": text}, shape.form, shape.plain)


def choice(values: list[Any], plain: str = "") -> Shape:
    """Return the shape of one of these values."""
    schema: dict[str, Any] = {"enum": values}
    if all(isinstance(value, str) for value in values):
        schema = {"type": "string", **schema}
    return Shape(schema, ["choice", values], plain)


def array(item: Shape) -> Shape:
    """Return the shape of a list with items of one type."""
    return Shape({"type": "array", "items": item.schema}, ["array", item.form], item.plain)


def distinct(item: Shape) -> Shape:
    """Return the shape of a list with unique items of one type."""
    return Shape({"type": "array", "items": item.schema, "uniqueItems": True}, ["distinct", item.form], "a list")


def fixed(items: list[Shape]) -> Shape:
    """Return the shape of a list with exactly these types, in this order."""
    schema = {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": len(items),
        "maxItems": len(items),
    }
    return Shape(
        schema, ["fixed", [item.form for item in items]], next((item.plain for item in items if item.plain), "")
    )


def mapping(value: Shape) -> Shape:
    """Return the shape of an object with any keys and values of one type."""
    return Shape({"type": "object", "additionalProperties": value.schema}, ["mapping", value.form], value.plain)


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
    parts = {field_name: [inner.shape.form, inner.required] for field_name, inner in fields.items()}
    return Shape(schema, ["structure", name, parts], plain or inner_plain)
