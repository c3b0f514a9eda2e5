"""Conversion of text to the type that a JSON Schema declares.

Schemas come from third parties: references are followed only within the schema, and only up to a limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ._calls import UnusableCall
from ._python_literals import parse_literal

_MAX_SCHEMAS = 64
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


def typed_value(text: str, schema: Any, root: Any) -> Any:
    """Return the value of a text. If it does not have the declared type, return the text, which validation reports.

    Args:
        text: the text.
        schema: the schema of the value; ``None`` if it is unknown, so that the value is a text.
        root: the whole schema, for references.

    Example:
        >>> typed_value("3", {"type": "integer"}, {}), typed_value("3", {"type": "string"}, {})
        (3, '3')
    """
    if schema is None:
        return text
    kinds = _kinds(schema, root)
    value = json_or_text(text)
    if isinstance(value, str) and text.strip() == value:
        value = _literal(text)
    if isinstance(value, str):
        return text
    return value if not kinds or _has_kind(value, kinds) else text


def json_or_text(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not valid JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def property_schema(schema: Any, key: str, root: Any) -> Any:
    """Return the schema of a property, or ``None`` if it is unknown."""
    for one in _alternatives(schema, root):
        properties = one.get("properties")
        if isinstance(properties, Mapping) and key in properties:
            return properties[key]
        if isinstance(one.get("additionalProperties"), Mapping):
            return one["additionalProperties"]
    return None


def item_schema(schema: Any, root: Any) -> Any:
    """Return the schema of the items of a list, or ``None`` if it is unknown."""
    return next((one["items"] for one in _alternatives(schema, root) if "items" in one), None)


def is_list_schema(schema: Any, root: Any) -> bool:
    """Return whether the schema is that of a list."""
    return "array" in _kinds(schema, root)


def _literal(text: str) -> Any:
    constant = text.strip().lower()
    if constant in _CONSTANTS:
        return _CONSTANTS[constant]
    try:
        return parse_literal(text)
    except UnusableCall:
        return text


def _has_kind(value: Any, kinds: set[str]) -> bool:
    if value is None:
        return "null" in kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float):
        return math.isfinite(value) and ("number" in kinds or ("integer" in kinds and value.is_integer()))
    if isinstance(value, int):
        return bool(kinds & {"number", "integer"})
    return ("array" if isinstance(value, list) else "object") in kinds


def _kinds(schema: Any, root: Any) -> set[str]:
    """Return the names of the types that a schema allows. The set is empty if it declares none."""
    found = set[str]()
    for one in _alternatives(schema, root):
        declared = one.get("type")
        found.update(kind for kind in (declared if isinstance(declared, list) else [declared]) if isinstance(kind, str))
        if declared is None:
            values = one.get("enum")
            found.update(map(_kind, values if isinstance(values, list) else ()))
            found.update(_kind(one[key]) for key in ("const",) if key in one)
    return found


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return "null" if value is None else "boolean" if isinstance(value, bool) else "string"
    return "number" if isinstance(value, int | float) else "array" if isinstance(value, list) else "object"


def _alternatives(schema: Any, root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those that it refers to or combines, up to the limit."""
    waiting = [schema]
    for _ in range(_MAX_SCHEMAS):
        if not waiting:
            return
        one = waiting.pop(0)
        if not isinstance(one, Mapping):
            continue
        yield one
        for key in ("anyOf", "oneOf", "allOf"):
            parts = one.get(key)
            waiting += parts[:_MAX_SCHEMAS] if isinstance(parts, list) else []
        if isinstance(one.get("$ref"), str):
            waiting.append(_referenced(one["$ref"], root))


def _referenced(reference: str, root: Any) -> Any:
    found = root
    for key in reference[2:].split("/")[:_MAX_SCHEMAS]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found
