"""JSON Schemas: whether they are valid, and whether data matches them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator

from ._failing import fail


def check_schema(plugin: str, what: str, make: Callable[[], Any] | Mapping[str, Any]) -> None:
    """Fail the check if something has no valid JSON Schema."""
    try:
        schema = json.loads(json.dumps(dict(make() if callable(make) else make), default=_plain, allow_nan=False))
        Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        problem = f"{error.json_path}: {error.message}"
    except Exception as error:  # noqa: BLE001  pydantic and `json` raise different errors
        problem = f"{type(error).__name__}: {error}"
    else:
        return
    fail(
        plugin,
        expected=f"{what} has a JSON Schema (draft 2020-12)",
        happened=problem,
        remedy="use types that have one, or add it with `WithJsonSchema`",
    )


def check_instance(plugin: str, what: str, data: Any, schema: Mapping[str, Any]) -> None:
    """Fail the check if data does not match its schema."""
    for error in Draft202012Validator(json.loads(json.dumps(schema, default=_plain))).iter_errors(_as_json(data)):
        fail(
            plugin,
            expected=f"{what} matches its JSON Schema",
            happened=f"{error.json_path}: {error.message}"[:500],
            remedy="correct the schema, or the data",
        )


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def _as_json(data: Any) -> Any:
    """Return data as JSON has it: bytes are text there."""
    if isinstance(data, bytes):
        return data.decode("latin-1")
    if isinstance(data, Mapping):
        return {key: _as_json(value) for key, value in data.items()}
    return [_as_json(value) for value in data] if isinstance(data, list | tuple) else data
