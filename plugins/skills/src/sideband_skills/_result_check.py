"""Validation of a tool's result. Nothing is converted: the worker has converted what is not JSON data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from ._problems import shown

# More than a result of the maximum size needs, unless its annotation has many alternatives.
_MAXIMUM_STEPS = 1_000_000
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
    """A value does not match its schema."""

    def __init__(self, path: _Path, reason: str) -> None:
        super().__init__(reason)
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
            _Walk().check(self.schema, result, ())
        except _Mismatch as mismatch:
            text = "".join(f"[{_step(step)}]" for step in mismatch.path)
            raise ValueError(f"{f'`result{text}`: ' if text else ''}{mismatch.reason}") from None


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return str(step)
    # A part of a key could be a part of a secret, which would not be redacted.
    return json.dumps(step, ensure_ascii=False) if len(step) <= _MAXIMUM_KEY else f"a key of {len(step):,} characters"


@define
class _Walk:
    """One check. A skill determines the schema and the result, so the number of steps is limited."""

    _steps: int = field(default=0, init=False)

    def check(self, schema: Mapping[str, Any], value: Any, path: _Path) -> None:
        self._steps += 1
        if self._steps > _MAXIMUM_STEPS:
            raise ValueError("it is too large to be checked with this annotation")
        if "anyOf" in schema:
            self._check_options(schema["anyOf"], value, path)
            return
        if not _has_type(schema, value):
            raise _Mismatch(path, f"expected {_expected(schema)}, got {_found(value)}")
        if "enum" in schema and not any(type(value) is type(one) and value == one for one in schema["enum"]):
            raise _Mismatch(path, f"expected {_expected(schema)}")
        if isinstance(value, list):
            self._check_items(schema, value, path)
        elif isinstance(value, dict):
            self._check_members(schema, value, path)

    def _check_options(self, options: list[Mapping[str, Any]], value: Any, path: _Path) -> None:
        fitting = [option for option in options if _has_type(option, value)]
        for option in fitting:
            try:
                self.check(option, value, path)
            except _Mismatch:
                if len(fitting) == 1:
                    raise
            else:
                return
        expected = " or ".join(dict.fromkeys(map(_expected, options)))
        raise _Mismatch(path, f"expected {expected}" + ("" if fitting else f", got {_found(value)}"))

    def _check_items(self, schema: Mapping[str, Any], value: list[Any], path: _Path) -> None:
        fixed = schema.get("prefixItems")
        if fixed is not None:
            if len(fixed) != len(value):
                raise _Mismatch(path, f"expected a list of {len(fixed)} values, got {len(value):,}")
            for index, (inner, item) in enumerate(zip(fixed, value, strict=True)):
                self.check(inner, item, (*path, index))
        elif items := schema.get("items"):
            for index, item in enumerate(value):
                self.check(items, item, (*path, index))

    def _check_members(self, schema: Mapping[str, Any], value: dict[str, Any], path: _Path) -> None:
        properties = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                raise _Mismatch(path, f"the key `{key}` is missing")
        for key, inner in properties.items():
            if key in value:
                self.check(inner, value[key], (*path, key))
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
