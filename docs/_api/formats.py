"""The description of what is written for others to read: messages, sessions, the ledger, and lines of the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs
from pydantic import BaseModel

from .annotations import text_of
from .python import Facts
from .schemas import plain_schema

__all__ = ["model_facts", "record_facts", "wire_facts"]

# What is below these keys is chosen by a skill or an op.
_FOREIGN = frozenset({"params", "payload", "value", "kwargs", "env", "lockdown", "__caps__", "capabilities", "details"})
_NAMES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    dict: "object",
    list: "list",
    type(None): "null",
}


def model_facts(prefix: str, models: Iterable[type[BaseModel]]) -> Facts:
    """Return the description of JSON objects that are both written and read, by the value that identifies their type.

    Args:
        prefix: the first part of the paths, such as ``session``.
        models: the models of the objects.
    """
    facts: Facts = {}
    for model in models:
        path = f"{prefix}:{_identity(model)}"
        schema = model.model_json_schema(by_alias=True)
        plain = plain_schema(schema)
        facts[path] = {"kind": "object"}
        for name, one in plain.get("properties", {}).items():
            is_required = name in plain.get("required", ())
            facts[f"{path}({name})"] = {"kind": "key", "use": "both", "required": is_required, "schema": one}
    return facts


def _identity(model: type[BaseModel]) -> str:
    """Return the constant by which readers know objects of a model, else its name."""
    for name in ("type", "role"):
        if name in model.model_fields:
            return str(model.model_fields[name].default)
    return model.__name__


def record_facts(path: str, record: type[attrs.AttrsInstance], *, hidden: Iterable[str] = ()) -> Facts:
    """Return the description of a line of the ledger, or of the result of a run.

    Args:
        path: its path.
        record: the class of the line.
        hidden: the fields that are not written.
    """
    facts: Facts = {path: {"kind": "object"}}
    for field in attrs.fields(record):
        if field.name not in hidden and not field.name.startswith("_"):
            facts[f"{path}({field.name})"] = {"kind": "key", "type": text_of(field.type, record.__module__)}
    return facts


def wire_facts(
    version: int,
    sent: Mapping[str, Mapping[str, Any]],
    received: Mapping[str, Mapping[str, Any]],
    required: Callable[[Mapping[str, Any], str], bool],
) -> Facts:
    """Return the description of the messages between host and worker, from an example of each.

    Args:
        version: the version of the protocol.
        sent: the messages that the worker sends, by type.
        received: the messages that the host sends, by type.
        required: a function that returns whether the host rejects a message without a field. Workers ignore fields that
            they do not know, and hosts in other languages may leave out new ones.
    """
    facts: Facts = {"wire:version": {"kind": "version", "value": version}}
    for kind, message in sent.items():
        facts |= _message(f"wire:worker.{kind}", message, partial(required, message))
    for kind, message in received.items():
        facts |= _message(f"wire:host.{kind.replace(', an error', '.error')}", message, lambda _: None)
    return facts


def _message(
    path: str, message: Mapping[str, Any], required: Callable[[str], bool | None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, {"kind": "message"}
    for name, value in json.loads(json.dumps(message)).items():
        if name != "__type__":
            for key, one in _keys(name, value):
                known = required(name)
                both = {} if known is None else {"use": "both", "required": known}
                kind = _NAMES[type(one)] if name not in _FOREIGN else "any"
                yield f"{path}({key})", {"kind": "key", **both, "type": kind}


def _keys(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    if isinstance(value, dict) and name not in _FOREIGN:
        for key, one in value.items():
            yield from ((f"{name}.{below}", found) for below, found in _keys(key, one))
