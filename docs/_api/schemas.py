"""JSON Schemas without descriptions, and the order between them: which one accepts all values of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["accepts", "plain_schema"]

Schema = Mapping[str, Any]

_PROSE = frozenset({"title", "description", "examples", "default", "discriminator", "$defs", "writeOnly", "readOnly"})
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = (
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "multipleOf",
    "uniqueItems",
    "propertyNames",
    "$ref",
)
_TYPES = {"string": str, "boolean": bool, "integer": int, "number": int | float, "null": type(None)}


def plain_schema(schema: Schema) -> dict[str, Any]:
    """Return a schema without prose, and with the definitions that it refers to in their places.

    Example:
        >>> plain_schema({"title": "A", "$ref": "#/$defs/A", "$defs": {"A": {"type": "string", "title": "A"}}})
        {'type': 'string'}
    """
    plain = _plain(schema, schema.get("$defs", {}), ())
    assert isinstance(plain, dict)  # noqa: S101
    return plain


def accepts(wide: Any, narrow: Any) -> bool:  # noqa: PLR0911  one return per form of a schema
    """Return whether a schema accepts each value that another one accepts. If that is not certain, return false.

    Properties that ``narrow`` does not mention are regarded as absent.

    Args:
        wide: the one schema, as returned by ``plain_schema``.
        narrow: the other schema.

    Example:
        >>> accepts({"type": "number"}, {"type": "integer", "minimum": 0})
        True
    """
    if wide == narrow or wide in ({}, True) or narrow is False:
        return True
    if not isinstance(wide, Mapping) or not isinstance(narrow, Mapping):
        return False
    if (ones := _alternatives(narrow)) is not None:
        return all(accepts(wide, one) for one in ones)
    if (others := _alternatives(wide)) is not None:
        return any(accepts(other, narrow) for other in others)
    if (values := _values(narrow)) is not None:
        return all(_is_valid(wide, value) for value in values)
    if _values(wide) is not None:
        return False
    if "type" in wide and not (
        wide["type"] == narrow.get("type") or (wide["type"], narrow.get("type")) == ("number", "integer")
    ):
        return False
    return _bounds_hold(wide, narrow) and _properties_fit(wide, narrow) and _items_fit(wide, narrow)


def _plain(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        # A recursive definition stays a reference.
        return {"$ref": name} if name in inside else _plain(definitions[name], definitions, (*inside, name))
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"properties", "patternProperties"}:
            found[key] = {name: _plain(one, definitions, inside) for name, one in sorted(value.items())}
        elif key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
            found["anyOf" if key == "oneOf" else key] = [_plain(one, definitions, inside) for one in value]
        elif key == "required":
            found[key] = sorted(value)
        elif key == "const":
            found["enum"] = [value]
        elif key not in _PROSE:
            found[key] = _plain(value, definitions, inside)
    return found


def _alternatives(schema: Schema) -> list[Any] | None:
    """Return the schemas of which one must hold, or ``None`` if there is only this one."""
    if "anyOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return [{**rest, **one} if isinstance(one, Mapping) else one for one in schema["anyOf"]]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": one} for one in schema["type"]]
    return None


def _values(schema: Schema) -> list[Any] | None:
    return schema.get("enum")


def _is_valid(schema: Schema, value: Any) -> bool:
    if (values := _values(schema)) is not None:
        return any(type(one) is type(value) and one == value for one in values)
    kind = _TYPES.get(str(schema.get("type")))
    is_kind = kind is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))
    return is_kind and not any(key in schema for key in (*_LOWER, *_UPPER, *_EXACT, "properties", "items"))


def _bounds_hold(wide: Schema, narrow: Schema) -> bool:
    return (
        all(key in narrow and narrow[key] >= wide[key] for key in _LOWER if key in wide)
        and all(key in narrow and narrow[key] <= wide[key] for key in _UPPER if key in wide)
        and all(narrow.get(key) == wide[key] for key in _EXACT if key in wide)
        and narrow.get("allOf") == wide.get("allOf")
    )


def _properties_fit(wide: Schema, narrow: Schema) -> bool:
    if not set(wide.get("required", ())) <= set(narrow.get("required", ())):
        return False
    known, rest = wide.get("properties", {}), wide.get("additionalProperties", True)
    if not all(accepts(known.get(name, rest), one) for name, one in narrow.get("properties", {}).items()):
        return False
    return narrow.get("type") != "object" or accepts(rest, narrow.get("additionalProperties", True))


def _items_fit(wide: Schema, narrow: Schema) -> bool:
    ones, others = narrow.get("prefixItems", []), wide.get("prefixItems", [])
    if len(ones) != len(others) or not all(map(accepts, others, ones)):
        return False
    return accepts(wide.get("items", {}), narrow.get("items", {}))
