"""Output schemas: a subset of JSON Schema, checked in a bounded number of steps.

A skill chooses the schema, and a model the value. A complete validator follows references without end and runs patterns
that backtrack, so this one supports what models are asked for, and refuses the rest.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema
from sideband.suggestions import did_you_mean

from ._errors import OutputSchemaInvalid

_MAX_SCHEMA, _MAX_NODES, _MAX_DEPTH = 65_536, 5_000, 32
_MAX_STEPS, _MAX_NESTING = 100_000, 200
_MAX_SHOWN = 80
_REFERENCE = re.compile(r"#(?:/(\$defs|definitions)/([^/~%]+))?\Z")
_NOTES = frozenset(
    {"$comment", "$defs", "$schema", "default", "definitions", "deprecated", "description", "examples", "format"}
    | {"readOnly", "title", "writeOnly"}
)
_TYPES: Mapping[str, str] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_COMPARISONS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "more than"),
    "exclusiveMaximum": (operator.lt, "less than"),
}
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"$defs", "definitions", "properties"})
_SCHEMAS = frozenset({"additionalProperties", "items"})
_OTHERS = frozenset({"$ref", "const", "enum", "pattern", "required", "type", "uniqueItems"})
_OF_ONE_TYPE: Mapping[str, type] = {**dict.fromkeys(_MAPS, Mapping), "$ref": str, "pattern": str, "uniqueItems": bool}
_KNOWN = sorted(_NOTES | _COUNTS | _COMPARISONS.keys() | _LISTS | _MAPS | _SCHEMAS | _OTHERS)


class _DoesNotFit(Exception):
    """A value does not match. The message is for the model."""


@frozen
class OutputSchema:
    """A checked schema.

    Attributes:
        schema: the schema as data.
        text: the schema as JSON, for messages.
    """

    schema: Mapping[str, Any]
    text: str
    _patterns: Mapping[str, SchemaValidator] = field(repr=False)

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> OutputSchema:
        """Check a schema.

        Raises:
            OutputSchemaInvalid: if it is too large, invalid, or uses what is not supported.
        """
        try:
            text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise OutputSchemaInvalid(f"it is not JSON: {error}") from None
        if len(text) > _MAX_SCHEMA:
            raise OutputSchemaInvalid(f"it has {len(text):,} characters; the maximum is {_MAX_SCHEMA:,}")
        patterns: dict[str, SchemaValidator] = {}
        for number, (path, one) in enumerate(_walk(schema)):
            if number == _MAX_NODES:
                raise OutputSchemaInvalid(f"it has more than {_MAX_NODES:,} subschemas")
            _check(path, one, schema, patterns)
        return cls(schema, text, patterns)

    def problem(self, value: Any) -> str | None:
        """Return why a value does not match, for the model, or ``None``.

        Raises:
            OutputSchemaInvalid: if the schema needs too many steps for this value.
        """
        try:
            _SchemaCheck(self).run(self.schema, value, "", 0)
        except _DoesNotFit as mismatch:
            return str(mismatch)
        except RecursionError:
            raise _too_many_steps() from None
        return None


def _walk(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield each subschema and its path, for messages."""
    waiting: list[tuple[str, Any, int]] = [("", schema, 0)]
    while waiting:
        path, one, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise OutputSchemaInvalid(f"it is nested more than {_MAX_DEPTH} levels deep")
        yield path or "the schema", one
        for key, value in one.items() if isinstance(one, Mapping) else ():
            at = f"{path}/{key}"
            if key in _LISTS and isinstance(value, list):
                waiting += [(f"{at}/{number}", inner, depth + 1) for number, inner in enumerate(value)]
            elif key in _MAPS and isinstance(value, Mapping):
                waiting += [(f"{at}/{name}", inner, depth + 1) for name, inner in value.items()]
            elif key in _SCHEMAS:
                waiting.append((at, value, depth + 1))


def _check(path: str, one: Any, root: Mapping[str, Any], patterns: dict[str, SchemaValidator]) -> None:
    if isinstance(one, bool):
        return
    if not isinstance(one, Mapping):
        raise OutputSchemaInvalid(f"{path} must be an object, true or false")
    for key, value in one.items():
        if key not in _KNOWN:
            raise OutputSchemaInvalid(f"{path} has the unsupported keyword `{key[:_MAX_SHOWN]}`{_closest(key)}")
        if not _is_valid(key, value):
            raise OutputSchemaInvalid(f"{path} has an invalid value of `{key}`: {_shown(value)}")
    if "$ref" in one and _referred(one["$ref"], root) is None:
        raise OutputSchemaInvalid(f"{path} refers to {_shown(one['$ref'])}, which is not in `$defs`")
    if "pattern" in one:
        try:
            patterns[one["pattern"]] = SchemaValidator(core_schema.str_schema(pattern=one["pattern"]))
        except (SchemaError, ValueError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise OutputSchemaInvalid(f"{path} has an unsupported `pattern`: {reason[:200]}") from None


def _closest(key: str) -> str:
    return did_you_mean(key, _KNOWN) if len(key) <= _MAX_SHOWN else ""


def _is_valid(key: str, value: Any) -> bool:
    """Return whether a keyword has a valid value."""
    if key in _COUNTS:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if key in _COMPARISONS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if key in ("required", "type"):
        names = [value] if key == "type" and isinstance(value, str) else value
        is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return is_list and (key == "required" or (bool(names) and _TYPES.keys() >= set(names)))
    expected: type | None = list if key in _LISTS or key == "enum" else _OF_ONE_TYPE.get(key)
    return expected is None or (isinstance(value, expected) and (expected is not list or bool(value)))


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the subschema that a reference names, or ``None``."""
    found = _REFERENCE.match(reference)
    if found is None:
        return None
    return root if found[1] is None else root.get(found[1], {}).get(found[2])


@define
class _SchemaCheck:
    """The check of one value."""

    schema: OutputSchema
    steps: int = 0

    def _spend(self, steps: int, depth: int) -> None:
        self.steps += steps
        if self.steps > _MAX_STEPS or depth > _MAX_NESTING:
            raise _too_many_steps()

    def run(self, schema: Any, value: Any, path: str, depth: int) -> None:
        self._spend(1, depth)
        if schema is True:
            return
        if schema is False:
            raise _DoesNotFit(f"{_at(path)} is not allowed")
        if "$ref" in schema:
            self.run(_referred(schema["$ref"], self.schema.schema), value, path, depth + 1)
        self._check_type(schema, value, path)
        self._check_values(schema, value, path)
        if isinstance(value, str):
            self._check_text(schema, value, path)
        elif isinstance(value, list):
            self._check_list(schema, value, path, depth)
        elif isinstance(value, dict):
            self._check_object(schema, value, path, depth)
        elif not isinstance(value, bool) and value is not None:
            _check_number(schema, value, path)
        self._check_alternatives(schema, value, path, depth)

    def _check_type(self, schema: Mapping[str, Any], value: Any, path: str) -> None:
        if "type" not in schema:
            return
        listed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is_of(kind, value) for kind in listed):
            expected = " or ".join(_TYPES[kind] for kind in listed)
            raise _DoesNotFit(f"{_at(path)} must be {expected}, got {_shown(value)}")

    def _check_values(self, schema: Mapping[str, Any], value: Any, path: str) -> None:
        for key in schema.keys() & {"const", "enum"}:
            allowed = schema["enum"] if key == "enum" else [schema["const"]]
            if self._canonical(value) not in [self._canonical(one) for one in allowed]:
                raise _DoesNotFit(f"{_at(path)} must be one of {_shown(allowed)}, got {_shown(value)}")

    def _check_text(self, schema: Mapping[str, Any], value: str, path: str) -> None:
        _check_count(schema, "Length", len(value), "characters", path)
        pattern = schema.get("pattern")
        if pattern is None:
            return
        self._spend(1 + len(value) // 1_000, 0)
        try:
            self.schema._patterns[pattern].validate_python(value)  # noqa: SLF001  of the same module
        except ValidationError:
            raise _DoesNotFit(f"{_at(path)} must match the pattern {_shown(pattern)}, got {_shown(value)}") from None

    def _check_list(self, schema: Mapping[str, Any], value: list[Any], path: str, depth: int) -> None:
        _check_count(schema, "Items", len(value), "items", path)
        first: Sequence[Any] = schema.get("prefixItems", ())
        rest = schema.get("items", True)
        for number, one in enumerate(value):
            self.run(first[number] if number < len(first) else rest, one, f"{path}[{number}]", depth + 1)
        if schema.get("uniqueItems"):
            known = [self._canonical(one) for one in value]
            if len(set(known)) < len(known):
                raise _DoesNotFit(f"{_at(path)} must not contain an item twice")

    def _check_object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, depth: int) -> None:
        _check_count(schema, "Properties", len(value), "properties", path)
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing:
            raise _DoesNotFit(f"{_at(path)} must have the property {_shown(missing[0])}")
        known: Mapping[str, Any] = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for name, one in value.items():
            if name not in known and others is False:
                raise _DoesNotFit(f"{_at(path)} must not have the property {_shown(name)}")
            self.run(known.get(name, others), one, f"{path}.{name[:_MAX_SHOWN]}", depth + 1)

    def _check_alternatives(self, schema: Mapping[str, Any], value: Any, path: str, depth: int) -> None:
        for one in schema.get("allOf", ()):
            self.run(one, value, path, depth + 1)
        for key in schema.keys() & {"anyOf", "oneOf"}:
            failures: list[str] = []
            for one in schema[key]:
                try:
                    self.run(one, value, path, depth + 1)
                except _DoesNotFit as mismatch:
                    failures.append(str(mismatch))
            matching = len(schema[key]) - len(failures)
            if matching == 0:
                raise _DoesNotFit(
                    f"{_at(path)} matches none of the alternatives: {'; '.join(one[:100] for one in failures[:3])}"
                )
            if key == "oneOf" and matching > 1:
                raise _DoesNotFit(f"{_at(path)} matches {matching} of the alternatives, and must match one")

    def _canonical(self, value: Any) -> Any:
        """Return a value that is hashable and equal for equal JSON values. ``true`` does not equal 1."""
        self._spend(1, 0)
        if isinstance(value, list):
            return "list", tuple(self._canonical(one) for one in value)
        if isinstance(value, dict):
            return "dict", tuple(sorted((name, self._canonical(one)) for name, one in value.items()))
        return isinstance(value, bool), value


def _too_many_steps() -> OutputSchemaInvalid:
    return OutputSchemaInvalid("it needs too many steps for an answer: it refers to itself, or the answer is too large")


def _is_of(kind: str, value: Any) -> bool:
    if kind in ("integer", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (kind == "number" or value == int(value))
    kinds = {"array": list, "boolean": bool, "null": type(None), "object": dict, "string": str}
    return isinstance(value, kinds[kind])


def _check_number(schema: Mapping[str, Any], value: float, path: str) -> None:
    for key, (fits, words) in _COMPARISONS.items():
        if key in schema and not fits(value, schema[key]):
            raise _DoesNotFit(f"{_at(path)} must be {words} {schema[key]}, got {_shown(value)}")


def _check_count(schema: Mapping[str, Any], what: str, count: int, unit: str, path: str) -> None:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and count < least:
        raise _DoesNotFit(f"{_at(path)} must have at least {least:,} {unit}, got {count:,}")
    if most is not None and count > most:
        raise _DoesNotFit(f"{_at(path)} must have at most {most:,} {unit}, got {count:,}")


def _at(path: str) -> str:
    return f"`{path.removeprefix('.')}`" if path else "the answer"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
