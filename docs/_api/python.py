"""The description of the Python API: each public name of each module, with its signature, members and fields."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeAlias, get_origin

import attrs
from pydantic import BaseModel
from sideband import SidebandError
from sideband.hooks import Event

from .annotations import text_of
from .members import members_of
from .signatures import function_facts, parameter_facts

__all__ = ["Facts", "names_of", "python_facts"]

Facts: TypeAlias = dict[str, dict[str, Any]]
"""Descriptions by path, such as ``python:sideband.Host.call(timeout)``."""

# Interfaces that the kernel or the agent implements. All other protocols are for plugins to implement.
_IMPLEMENTED_BY_THE_HOST = ("Context", "AgentSession", "ChildResult", "Claims", "Lease")
_NOT_API = frozenset({"__version__"})
_NO_ANCESTORS = frozenset({"object", "Generic", "Protocol"})


def names_of(modules: Iterable[ModuleType]) -> dict[str, Any]:
    """Return the public values of modules by qualified name. The shortest name of a value comes first."""
    found = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", ())
        if name not in _NOT_API
    }
    return {name: found[name] for name in sorted(found, key=lambda name: (name.count("."), name))}


def python_facts(modules: Iterable[ModuleType]) -> Facts:
    """Return the description of the public names of modules.

    A value with several names is described at one of them, and the others refer to it.
    """
    facts: Facts = {}
    names = names_of(modules)
    homes: dict[int, str] = {}
    for name, value in names.items():
        homes.setdefault(id(value), name)
    classes = {value: homes[id(value)] for value in names.values() if isinstance(value, type)}
    for name, value in names.items():
        path = f"python:{name}"
        if homes[id(value)] != name and not isinstance(value, int | str | float | None):
            facts[path] = {"kind": "same", "as": homes[id(value)]}
        elif isinstance(value, type):
            facts.update(_class(path, value, classes))
        elif inspect.isfunction(value):
            facts.update(function_facts(path, value, value.__module__))
        else:
            facts[path] = _constant(value, name.rpartition(".")[0])
    return facts


def _constant(value: Any, module: str) -> dict[str, Any]:
    """Return the description of a constant or of an alias of a type."""
    if get_origin(value) is not None:
        return {"kind": "alias", "alias": text_of(value, module)}
    return {"kind": "constant", "type": text_of(type(value))}


def _class(path: str, value: type, classes: Mapping[type, str]) -> Facts:
    home = classes[value]
    ancestors = [one for one in value.__mro__[1:] if one not in classes and one.__module__.startswith("sideband")]
    own = [value, *ancestors]
    constructor = _constructor(value, classes)
    facts: Facts = {
        path: {
            "kind": _kind(value),
            "bases": sorted({_ancestor(one, classes) for one in value.__mro__[1:] if _is_visible(one, classes)}),
            **({"constructor": constructor} if constructor is not None else {}),
        }
    }
    if constructor == home:
        parameters, order = parameter_facts(path, _signature_of(value), value.__module__)
        facts.update(parameters)
        facts[path]["order"] = order
    if issubclass(value, enum.Enum):
        facts.update(_values(path, value))
    facts.update(members_of(path, [one for one in value.__mro__ if one in own or one is value], _hidden(value)))
    return facts


def _kind(value: type) -> str:
    if getattr(value, "_is_protocol", False):
        return "class" if value.__name__.endswith(_IMPLEMENTED_BY_THE_HOST) else "interface"
    return "abstract class" if inspect.isabstract(value) else "class"


def _is_visible(base: type, classes: Mapping[type, str]) -> bool:
    is_ours = base.__module__.startswith("sideband")
    return base in classes or not (is_ours or base.__name__.startswith("_") or base.__name__ in _NO_ANCESTORS)


def _ancestor(base: type, classes: Mapping[type, str]) -> str:
    return classes.get(base) or base.__name__


def _constructor(value: type, classes: Mapping[type, str]) -> str | None:
    """Return the public class whose constructor a class has; ``None`` if the callers of the API do not construct it.

    The kernel and the agent construct events and contexts.
    """
    if (
        issubclass(value, Event | enum.Enum)
        or getattr(value, "_is_protocol", False)
        or value.__name__.endswith("Context")
    ):
        return None
    owner = next(one for one in value.__mro__ if "__init__" in vars(one) or "__new__" in vars(one))
    return classes.get(owner, classes[value])


def _signature_of(value: type) -> inspect.Signature:
    if issubclass(value, BaseModel):
        value.model_rebuild()  # a model that defers it has no parameters until it is first used
    try:
        return inspect.signature(value)
    except ValueError:  # an exception without a constructor of its own accepts any arguments
        return inspect.Signature()


def _values(path: str, value: type[enum.Enum]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, member in value.__members__.items():
        shown = member.value if isinstance(member.value, str | int | float | None) else "computed"
        yield f"{path}.{name}", {"kind": "member", "value": shown}


def _hidden(value: type) -> frozenset[str]:
    """Return the members that other parts of the snapshot describe."""
    if issubclass(value, Event):
        fields = {one.name for one in attrs.fields(value)} if attrs.has(value) else set()
        return frozenset({"hook", "kind", "on_failure", "deadline", "may_return", "items", *fields})
    if issubclass(value, SidebandError):  # those of skills are not, and `error:` does not describe them
        return frozenset({"code", "exit_code", "retryable"})
    if issubclass(value, enum.Enum):
        return frozenset(value.__members__)
    return frozenset()
