"""The description of the members of a class: methods, properties and attributes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from types import FunctionType
from typing import Any

from .annotations import text_of
from .signatures import function_facts

__all__ = ["members_of"]

Facts = dict[str, dict[str, Any]]

# What a class promises by these methods is used without naming them.
_OPERATIONS = frozenset(
    {"__call__", "__aenter__", "__enter__", "__iter__", "__aiter__", "__len__", "__getitem__", "__contains__",
     "__await__", "__anext__", "__next__", "__bool__", "__add__", "__bytes__"}
)  # fmt: skip
_PLAIN = (str, int, float, bool, bytes, tuple, frozenset)
_NOT_API = frozenset({"model_config"})


def members_of(path: str, classes: Sequence[type], hidden: frozenset[str]) -> Facts:
    """Return the description of the members that a class and its private bases define.

    Args:
        path: the path of the class.
        classes: the class and these bases, most specific first.
        hidden: the names that are left out.
    """
    facts: Facts = {}
    for owner in reversed(classes):
        annotations = inspect.get_annotations(owner)
        for name in (*annotations, *vars(owner), *_assigned(owner)):
            if name not in hidden and _is_public(name):
                own = f"{path}.{name}"
                found = _member(own, name, owner, annotations)
                if found:
                    facts = {one: fact for one, fact in facts.items() if one != own and not one.startswith(f"{own}(")}
                    facts.update(found)
    return facts


def _is_public(name: str) -> bool:
    return name in _OPERATIONS or not (name.startswith("_") or name in _NOT_API)


def _member(  # noqa: PLR0911  one return per form of a member
    path: str, name: str, owner: type, annotations: dict[str, Any]
) -> Facts:
    value = vars(owner).get(name)
    module = owner.__module__
    required = {"abstract": True} if getattr(value, "__isabstractmethod__", False) else {}
    match value:
        case property(fget=get) | cached_property(func=get):
            returned = inspect.get_annotations(get).get("return", Any) if callable(get) else Any
            writable = getattr(value, "fset", None) is not None
            return {path: {**_attribute(text_of(returned, module), is_writable=writable), **required}}
        case staticmethod():
            return function_facts(path, value.__func__, module, kind="static method")
        case classmethod():
            return function_facts(path, value.__func__, module, kind="class method", bound=True)
        case FunctionType():
            facts = function_facts(path, value, module, kind="method", bound=True)
            facts[path] |= required
            return facts
    if name in annotations:
        return {path: _attribute(text_of(annotations[name], module), is_writable=False)}
    if isinstance(value, _PLAIN):
        return {path: _attribute(text_of(type(value)), is_writable=False)}
    return {path: _attribute("Any", is_writable=False)} if name in _assigned(owner) else {}


def _attribute(kind: str, *, is_writable: bool) -> dict[str, Any]:
    return {"kind": "attribute", "type": kind, **({"use": "both"} if is_writable else {})}


@cache
def _assigned(owner: type) -> Iterable[str]:
    """Return the names of the attributes that the constructor of a class without declared fields assigns."""
    written = vars(owner).get("__init__")
    if not isinstance(written, FunctionType) or written.__code__.co_filename.startswith("<"):
        return ()
    return tuple(_targets(written))


def _targets(function: Callable[..., Any]) -> Iterator[str]:
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
