"""Convert texts in the arguments of a call to the types that the tool expects, where only one meaning is possible."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from attrs import define, field

_DEEPEST = 32
_LONGEST_NUMBER = 100
_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)(?:\.0+)?\Z")


def coerced(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the arguments with texts converted, and the paths of those that were.

    A text is converted if its schema allows no text, and the text is JSON for a type that it allows: ``true``, ``12``,
    ``1.5``, an array or an object. A number with the fraction ``.0`` is also a whole number. All else is left as it is,
    so that the validation of the tool reports it.

    Args:
        arguments: the arguments as the model wrote them.
        schema: the JSON Schema of the arguments.

    Example:
        >>> schema = {"properties": {"limit": {"type": "integer"}, "name": {"type": ["string", "integer"]}}}
        >>> coerced({"limit": "12", "name": "12"}, schema)
        ({'limit': 12, 'name': '12'}, ['limit'])
    """
    work = _Coercion(schema)
    result = work.value(arguments, schema, "", 0)
    return (result, work.paths) if work.paths else (arguments, [])


@define
class _Coercion:
    root: Mapping[str, Any]
    paths: list[str] = field(factory=list)

    def value(self, value: Any, schema: Any, path: str, depth: int) -> Any:
        if depth > _DEEPEST or not isinstance(value, str | Mapping | list):
            return value
        options = self._options(schema, 0)
        if isinstance(value, str):
            converted = _converted(value, _types(options))
            if converted is value:
                return value
            self.paths.append(path)
            value = converted
        if isinstance(value, Mapping):
            return self._members(value, options, path, depth)
        if isinstance(value, list) and (items := _only(options, "items")) is not None:
            return [self.value(one, items, f"{path}.{number}", depth + 1) for number, one in enumerate(value)]
        return value

    def _members(
        self, value: Mapping[str, Any], options: Sequence[Mapping[str, Any]], path: str, depth: int
    ) -> Mapping[str, Any]:
        properties = _only(options, "properties")
        if not isinstance(properties, Mapping):
            return value
        return {
            name: self.value(one, properties[name], f"{path}.{name}" if path else name, depth + 1)
            if name in properties
            else one
            for name, one in value.items()
        }

    def _options(self, schema: Any, depth: int) -> list[Mapping[str, Any]]:
        """Return the alternatives of a schema, without references. An empty one allows anything."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return [{}]
        if isinstance(reference := schema.get("$ref"), str):
            return self._options(self._definition(reference), depth + 1)
        for name in ("anyOf", "oneOf"):
            if isinstance(several := schema.get(name), list):
                return [found for one in several for found in self._options(one, depth + 1)]
        if isinstance(several := schema.get("allOf"), list):
            return self._options(several[0], depth + 1) if len(several) == 1 else [{}]
        return [schema]

    def _definition(self, reference: str) -> Any:
        found: Any = self.root
        for part in reference.removeprefix("#/").split("/") if reference.startswith("#/") else [""]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found


def _types(options: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the types that the alternatives allow; empty if one of them allows texts, or does not say."""
    found: set[str] = set()
    for one in options:
        types = one.get("type")
        named = [types] if isinstance(types, str) else types
        if not isinstance(named, list) or "string" in named:
            return frozenset()
        found.update(map(str, named))
    return frozenset(found)


def _only(options: Sequence[Mapping[str, Any]], keyword: str) -> Any:
    """Return what the only alternative that has the keyword says; ``None`` if several have it."""
    found = [one[keyword] for one in options if keyword in one]
    return found[0] if len(found) == 1 else None


def _converted(text: str, types: frozenset[str]) -> Any:
    """Return the value of a text, or the text itself."""
    if not types or (len(text) > _LONGEST_NUMBER and types.isdisjoint(("array", "object"))):
        return text
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, bool):
        return value if "boolean" in types else text
    if isinstance(value, int | float):
        if "integer" in types and _WHOLE.match(text.strip()):
            return int(value)
        return value if "number" in types and isfinite(value) else text
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
    return value if kind in types else text


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. One with a repeated name has no single meaning."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated")
    return found
