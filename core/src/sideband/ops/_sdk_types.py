"""Convert JSON schemas to Python annotations, as source text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_BINARY = ("binary", "base64", "base64url")
_MAXIMUM_DEPTH = 8


@frozen
class Annotator:
    """Writes annotations for the types of one schema. Types that cannot be expressed become ``Any``.

    Args:
        definitions: the schema's ``$defs``.
        shadowed: builtin names that the module redefines, for instance by a function ``list``.

    Example:
        >>> Annotator().write({"type": "array", "items": {"type": "string"}})
        'list[str]'
        >>> Annotator(shadowed=frozenset({"list"})).write({"type": "array"})
        '_builtins.list[Any]'
    """

    definitions: Mapping[str, Any] = {}
    shadowed: frozenset[str] = frozenset()

    def write(self, schema: Any, depth: int = 0) -> str:
        """Return the annotation for ``schema``."""
        # The limit also terminates recursive types.
        if not isinstance(schema, Mapping) or depth > _MAXIMUM_DEPTH:
            return "Any"
        if "$ref" in schema:
            return self.write(self.definitions.get(str(schema["$ref"]).rpartition("/")[2]), depth + 1)
        if "enum" in schema or "const" in schema:
            return _literal(schema.get("enum", [schema.get("const")]))
        options = schema.get("anyOf", schema.get("oneOf"))
        if options is not None:
            return _union(self.write(option, depth + 1) for option in options)
        return self._write_type(schema, depth)

    def _write_type(self, schema: Mapping[str, Any], depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union(self.write({**schema, "type": one}, depth + 1) for one in kind)
        if kind == "null":
            return "None"
        if kind == "string" and schema.get("format") in _BINARY:
            return self._builtin("bytes")
        if kind == "array":
            return f"{self._builtin('list')}[{self.write(schema.get('items'), depth + 1)}]"
        if kind == "object":
            values = "Any" if "properties" in schema else self.write(schema.get("additionalProperties"), depth + 1)
            return f"{self._builtin('dict')}[{self._builtin('str')}, {values}]"
        return self._builtin(_SIMPLE[kind]) if kind in _SIMPLE else "Any"

    def _builtin(self, name: str) -> str:
        return f"_builtins.{name}" if name in self.shadowed else name


def _union(options: Iterable[str]) -> str:
    unique = list(dict.fromkeys(options))
    return "Any" if "Any" in unique or not unique else " | ".join(unique)


def _literal(values: Iterable[Any]) -> str:
    known = list(values)
    if not known or not all(value is None or isinstance(value, str | int | bool) for value in known):
        return "Any"
    return f"Literal[{', '.join(repr(value) for value in known)}]"
