"""Validation of a tool's result. Nothing is converted: the worker has converted what is not JSON data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field, frozen

from ._problems import shown

# More than a result needs, unless its annotation has many alternatives.
_FREE_STEPS, _STEPS_PER_VALUE = 10_000, 6
_MAXIMUM_KEY = 80
_EXPECTED: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "array": ("a list", (list,)),
    "boolean": ("true or false", (bool,)),
    "integer": ("an integer", (int, bool)),
    "null": ("`None`", (type(None),)),
    "number": ("a number", (float, int, bool)),
    "object": ("an object", (dict,)),
    "string": ("text", (str,)),
}
_FOUND = {bytes: "bytes", bool: "a boolean", dict: "an object", float: "a number", int: "an integer", list: "a list"}
_Path = tuple[int | str, ...]


class _Mismatch(Exception):
    """A value does not match its schema. The reason is a function: most alternatives that fail need no message."""

    def __init__(self, path: _Path, reason: Callable[[], str]) -> None:
        super().__init__()
        self.path = path
        self.reason = reason


@frozen
class ResultCheck:
    """The implementation of ``ToolSpec.validate_result``.

    Args:
        schema: the schema of the result.
    """

    schema: Mapping[str, Any]

    def __call__(self, result: Any) -> None:
        """Check a result, which is plain data.

        Raises:
            ValueError: if it does not match; the message names the first value that does not.
        """
        try:
            _Walk(_FREE_STEPS + _STEPS_PER_VALUE * _count(result)).check(self.schema, result, ())
        except _Mismatch as mismatch:
            text = "".join(f"[{_step(step)}]" for step in mismatch.path)
            raise ValueError(f"{f'`result{text}`: ' if text else ''}{mismatch.reason()}") from None


def _count(value: Any) -> int:
    """Return the number of values in a value."""
    total, waiting = 1, [value]
    for one in waiting:
        items = one if isinstance(one, list) else one.values() if isinstance(one, dict) else ()
        total += len(items)
        waiting += [item for item in items if isinstance(item, list | dict)]
    return total


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return str(step)
    # A part of a key could be a part of a secret, which would not be redacted.
    return json.dumps(step, ensure_ascii=False) if len(step) <= _MAXIMUM_KEY else f"a key of {len(step):,} characters"


@define
class _Walk:
    """One check. A skill determines the schema and the result, so the number of steps is limited.

    What a step searches depends on the schema alone, and is prepared once: alternatives by type, and listed values.

    Args:
        steps: the number of steps.
    """

    _steps: int
    _fitting: dict[tuple[int, type], list[Mapping[str, Any]]] = field(factory=dict, init=False)
    _listed: dict[int, frozenset[tuple[type, Any]]] = field(factory=dict, init=False)

    def check(self, schema: Mapping[str, Any], value: Any, path: _Path) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise ValueError("it is too large to be checked with this annotation")
        if "anyOf" in schema:
            self._check_options(schema["anyOf"], value, path)
            return
        if not _has_type(schema, value):
            raise _Mismatch(path, lambda: f"expected {_expected(schema)}, got {_found(value)}")
        if "enum" in schema and not self._is_listed(schema["enum"], value):
            raise _Mismatch(path, lambda: f"expected {_expected(schema)}")
        if isinstance(value, list):
            self._check_items(schema, value, path)
        elif isinstance(value, dict):
            self._check_members(schema, value, path)

    def _check_options(self, options: list[Mapping[str, Any]], value: Any, path: _Path) -> None:
        key = id(options), type(value)
        if (fitting := self._fitting.get(key)) is None:
            fitting = self._fitting[key] = [option for option in options if _has_type(option, value)]
        for option in fitting:
            try:
                self.check(option, value, path)
            except _Mismatch:
                if len(fitting) == 1:
                    raise
            else:
                return
        got = "" if fitting else f", got {_found(value)}"
        raise _Mismatch(path, lambda: f"expected {' or '.join(dict.fromkeys(map(_expected, options)))}{got}")

    def _is_listed(self, values: list[Any], value: Any) -> bool:
        if (listed := self._listed.get(id(values))) is None:
            listed = self._listed[id(values)] = frozenset((type(one), one) for one in values)
        return not isinstance(value, list | dict) and (type(value), value) in listed

    def _check_items(self, schema: Mapping[str, Any], value: list[Any], path: _Path) -> None:
        fixed = schema.get("prefixItems")
        if fixed is not None:
            if len(fixed) != len(value):
                raise _Mismatch(path, lambda: f"expected a list of {len(fixed)} values, got {len(value):,}")
            for index, (inner, item) in enumerate(zip(fixed, value, strict=True)):
                self.check(inner, item, (*path, index))
        elif items := schema.get("items"):
            for index, item in enumerate(value):
                self.check(items, item, (*path, index))

    def _check_members(self, schema: Mapping[str, Any], value: dict[str, Any], path: _Path) -> None:
        properties = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                raise _Mismatch(path, partial("the key `{}` is missing".format, key))
        for key in value if len(value) < len(properties) else properties:
            if key in properties and key in value:
                self.check(properties[key], value[key], (*path, key))
        if others := schema.get("additionalProperties"):
            for key, item in value.items():
                self.check(others, item, (*path, key))


def _has_type(schema: Mapping[str, Any], value: Any) -> bool:
    if "contentEncoding" in schema:
        return isinstance(value, bytes)
    kind = schema.get("type")
    return kind is None or type(value) in _EXPECTED[kind][1]


def _expected(schema: Mapping[str, Any]) -> str:
    if "contentEncoding" in schema:
        return "bytes"
    if "enum" in schema:
        return f"one of {shown(schema['enum'])}"
    return _EXPECTED[schema["type"]][0] if "type" in schema else "another value"


def _found(value: Any) -> str:
    return "`None`" if value is None else _FOUND.get(type(value), "text")
