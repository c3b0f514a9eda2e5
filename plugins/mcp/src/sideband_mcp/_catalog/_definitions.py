"""The definitions of the tools of a server, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sideband.tools import SCHEMA_LIMIT

from .._models import ToolDefinition

_MAX_NAME = 1_024


def definitions_of(tools: Iterable[Any]) -> tuple[Sequence[ToolDefinition], Sequence[str]]:
    """Return the definitions of those tools that can be offered, sorted by name, and the problems of the others.

    Args:
        tools: the tools, as the SDK has parsed them.
    """
    found: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    for one in tools:
        if (problem := _problem(one)) is not None:
            problems.append(f"`{one.name[:_MAX_NAME]}` {problem}")
        elif one.name in found:
            problems.append(f"`{one.name}` is defined twice")
        else:
            found[one.name] = ToolDefinition(
                name=one.name, description=one.description or one.title or "", parameters=one.input_schema
            )
    return [found[name] for name in sorted(found)], problems


def _problem(one: Any) -> str | None:
    if not one.name or len(one.name) > _MAX_NAME:
        return f"must have a name of 1 to {_MAX_NAME:,} characters"
    if one.input_schema.get("type") != "object":
        return "has no parameters of the type `object`"
    size = len(one.description or "") + len(json.dumps(one.input_schema))
    return f"has a definition of more than {SCHEMA_LIMIT:,} characters" if size > SCHEMA_LIMIT else None
