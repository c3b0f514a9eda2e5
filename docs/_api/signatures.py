"""The description of functions and their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from .annotations import text_of

__all__ = ["function_facts", "parameter_facts", "shown_default"]

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "position",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "position or name",
    inspect.Parameter.KEYWORD_ONLY: "name",
    inspect.Parameter.VAR_POSITIONAL: "further positions",
    inspect.Parameter.VAR_KEYWORD: "further names",
}
_LONGEST = 60
_OPEN = ("further positions", "further names")


def function_facts(
    path: str, function: Callable[..., Any], module: str, *, kind: str = "function", bound: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the description of a function or method.

    Args:
        path: its path.
        function: the function.
        module: the module in which its annotations are written.
        kind: ``function``, or the kind of method.
        bound: whether the first parameter is passed by Python.
    """
    signature = inspect.signature(function)
    if bound:
        signature = signature.replace(parameters=[*signature.parameters.values()][1:])
    parameters, order = parameter_facts(path, signature, module)
    returned = signature.return_annotation
    fact = {
        "kind": kind,
        "async": inspect.iscoroutinefunction(function),
        "type": "Any" if returned is inspect.Signature.empty else text_of(returned, module),
        "order": order,
    }
    return {path: fact, **parameters}


def parameter_facts(
    path: str, signature: inspect.Signature, module: str
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the descriptions of parameters, and the names of those that can be passed by position, in order."""
    facts, order = {}, []
    for name, parameter in signature.parameters.items():
        passed = _KINDS[parameter.kind]
        fact = {"kind": "parameter", "passed": passed, "required": False}
        fact["type"] = (
            "Any" if parameter.annotation is inspect.Parameter.empty else text_of(parameter.annotation, module)
        )
        if parameter.default is not inspect.Parameter.empty:
            fact["default"] = shown_default(parameter.default)
        elif passed not in _OPEN:
            fact["required"] = True
        if passed.startswith("position"):
            order.append(name)
        facts[f"{path}({'*' * _OPEN.index(passed) + '*' if passed in _OPEN else ''}{name})"] = fact
    return facts, order


def shown_default(default: Any) -> str:
    """Return a default as text, if that is the same on each machine."""
    match default:
        case Enum():
            return f"{type(default).__name__}.{default.name}"
        case None | bool() | int() | float() | str() | bytes() if len(repr(default)) <= _LONGEST:
            return repr(default)
        case tuple() | list() | set() | frozenset() | Mapping() if not default:
            return f"an empty {type(default).__name__}"
        case tuple():
            return f"({', '.join(map(shown_default, default))})"
    return "computed"
