"""Annotations as text in one normal form, and the order between them: which type has all values of another one."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

__all__ = ["fits", "text_of"]

_ANYTHING = ("Any", "object")
_TRANSPARENT = ("ClassVar", "Final", "Required", "NotRequired", "ReadOnly")
_PARENTS: Mapping[str, tuple[str, ...]] = {
    "bool": ("int",),
    "int": ("float",),
    "list": ("MutableSequence",),
    "MutableSequence": ("Sequence",),
    "tuple": ("Sequence",),
    "Sequence": ("Collection",),
    "dict": ("MutableMapping",),
    "MutableMapping": ("Mapping",),
    "Mapping": ("Collection",),
    "set": ("Set",),
    "frozenset": ("Set",),
    "Set": ("Collection",),
    "Collection": ("Iterable",),
    "Generator": ("Iterator",),
    "Iterator": ("Iterable",),
    "AsyncGenerator": ("AsyncIterator",),
    "AsyncIterator": ("AsyncIterable",),
    "Coroutine": ("Awaitable",),
}
# Types that only return values of their parameters. In all others, such as `list`, a parameter may not change.
_READ_ONLY = frozenset(_PARENTS) | {"Iterable", "AsyncIterable", "Awaitable", "type"}
_WRITABLE = frozenset({"list", "dict", "set", "MutableSequence", "MutableMapping", "MutableSet"})


def text_of(annotation: Any, module: str = "") -> str:
    """Return an annotation as text that does not depend on imports, order, aliases or the version of Python.

    Args:
        annotation: a type, or its text as in a module with postponed annotations.
        module: the module whose private aliases are replaced by their values.

    Example:
        >>> text_of("typing.Optional[collections.abc.Mapping[str, 'int']]")
        'Mapping[str, int] | None'
        >>> text_of(None | str)
        'str | None'
    """
    written = annotation if isinstance(annotation, str) else _written(annotation)
    return ast.unparse(_normal(_parsed(written.strip().removeprefix("*")), module))


def fits(narrow: str, wide: str, ancestors: Mapping[str, Sequence[str]] | None = None) -> bool:
    """Return whether each value of one type is a value of another one.

    Args:
        narrow: the one type, as returned by ``text_of``.
        wide: the other type.
        ancestors: the names of the ancestors of classes, by name.

    Example:
        >>> fits("list[str]", "Sequence[str] | None"), fits("Sequence[str]", "list[str]")
        (True, False)
    """
    return _fits(_parsed(narrow), _parsed(wide), ancestors or {})


def _written(value: Any) -> str:  # noqa: PLR0911  one return per form of a type
    """Return a type as an expression, which ``_normal`` changes further."""
    origin, arguments = get_origin(value), get_args(value)
    match value:
        case None | NoneType():
            return "None"
        case str():
            return value
        case ForwardRef():
            return value.__forward_arg__
        case list() | tuple():
            return f"[{', '.join(map(_written, value))}]"
        case _ if value is NoneType:
            return "None"
        case _ if value is ...:
            return "..."
    if origin is Annotated:
        return _written(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal, arguments))}]"
    if origin in (Union, UnionType):
        return " | ".join(f"({_written(one)})" for one in arguments)
    if origin is not None:
        return f"{_name(origin)}[{', '.join(map(_written, arguments))}]" if arguments else _name(origin)
    return _name(value)


def _literal(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | bytes | NoneType) else f"{type(value).__name__}.{value.name}"


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", None) or type(value).__name__)


def _normal(  # noqa: PLR0911  one return per form of a type
    node: ast.expr, module: str, inside: tuple[str, ...] = ()
) -> ast.expr:
    """Return an expression in the normal form. ``inside`` has the names of the aliases that it is a part of."""

    def inner(one: ast.expr) -> ast.expr:
        return _normal(one, module, inside)

    match node:
        case ast.Constant(value=str(text)):
            return inner(_parsed(text.strip()))
        case ast.Attribute(attr=name):
            return ast.Name(name)
        case ast.Name(id=name) if name.startswith("_") and name not in inside:
            value = getattr(sys.modules.get(module), name, None)
            # Private classes and type variables keep their names.
            return node if get_origin(value) is None else _normal(_parsed(_written(value)), module, (*inside, name))
        case ast.Name(id="AbstractSet"):
            return ast.Name("Set")
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([inner(left), inner(right)])
        case ast.List(elts=elements):
            return ast.List([inner(one) for one in elements])
        case ast.Subscript(value=owner, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            name = ast.unparse(inner(owner))
            if name == "Literal":
                return _subscript(name, sorted(map(_member, parts), key=ast.unparse))
            if name == "Annotated" or name in _TRANSPARENT:
                return inner(parts[0])
            if name == "Optional":
                return _union([inner(parts[0]), ast.Constant(None)])
            if name == "Union":
                return _union([inner(one) for one in parts])
            return _subscript(name, [inner(one) for one in parts])
    return node


def _member(node: ast.expr) -> ast.expr:
    """Return a value of a ``Literal``; the name of an enumeration without its module."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            return ast.Attribute(ast.Name(owner), name)
    return node


def _subscript(name: str, parts: list[ast.expr]) -> ast.expr:
    return ast.Subscript(ast.Name(name), parts[0] if len(parts) == 1 else ast.Tuple(parts))


def _union(nodes: Sequence[ast.expr]) -> ast.expr:
    """Return the union of types, each once, sorted, ``None`` last."""
    found = {ast.unparse(one): one for node in nodes for one in _members(node)}
    first, *others = [found[text] for text in sorted(found, key=lambda text: (text == "None", text))]
    for one in others:
        first = ast.BinOp(first, ast.BitOr(), one)
    return first


def _members(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_members(left), *_members(right)]
    return [node]


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _fits(narrow: ast.expr, wide: ast.expr, ancestors: Mapping[str, Sequence[str]]) -> bool:
    if ast.unparse(narrow) == ast.unparse(wide) or ast.unparse(wide) in _ANYTHING:
        return True
    ones, others = _members(narrow), _members(wide)
    if len(ones) + len(others) > 2:
        return all(any(_fits(one, other, ancestors) for other in others) for one in ones)
    name, parts = _split(narrow)
    wide_name, wide_parts = _split(wide)
    if name == wide_name == "tuple" and wide_parts and _is_of_any_length(narrow) and not _is_of_any_length(wide):
        return False
    if name == "Literal":
        return _literal_fits(parts, wide_name, wide_parts)
    if name == wide_name == "Callable":
        return _callable_fits(parts, wide_parts, ancestors)
    return wide_name in _above(name, ancestors) and _parameters_fit(parts, wide_name, wide_parts, ancestors)


def _parameters_fit(
    parts: Sequence[ast.expr], name: str, wide_parts: Sequence[ast.expr], ancestors: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether the parameters of a type fit those of the type ``name`` above it, which may be without."""
    if not wide_parts or len(parts) != len(wide_parts):
        return not wide_parts
    if name in _READ_ONLY - _WRITABLE:
        return all(_fits(one, other, ancestors) for one, other in zip(parts, wide_parts, strict=True))
    return list(map(ast.unparse, parts)) == list(map(ast.unparse, wide_parts))


def _split(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name of a type and its parameters; those of ``tuple[T, …]`` as the one of a sequence."""
    if not isinstance(node, ast.Subscript):
        return ast.unparse(node), []
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    return ast.unparse(node.value), [one for one in parts if not _is_ellipsis(one)]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_of_any_length(node: ast.expr) -> bool:
    """Return whether a tuple is ``tuple[T, …]``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and any(map(_is_ellipsis, node.slice.elts))
    )


def _literal_fits(values: Sequence[ast.expr], name: str, others: Sequence[ast.expr]) -> bool:
    if name == "Literal":
        return set(map(ast.unparse, values)) <= set(map(ast.unparse, others))
    kinds = {type(one.value).__name__ if isinstance(one, ast.Constant) else "" for one in values}
    return all(name in _above(kind, {}) for kind in kinds)


def _callable_fits(
    parts: Sequence[ast.expr], others: Sequence[ast.expr], ancestors: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether a function can be used as another one: it accepts all arguments, and returns nothing else."""
    match parts, others:
        case [ast.List(elts=accepted), returned], [ast.List(elts=passed), expected]:
            return (
                len(accepted) == len(passed)
                and all(_fits(one, other, ancestors) for one, other in zip(passed, accepted, strict=True))
                and _fits(returned, expected, ancestors)
            )
    return False


def _above(name: str, ancestors: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a type and all types above it."""
    found = {name, *ancestors.get(name, ())}
    for parent in _PARENTS.get(name, ()):
        found |= _above(parent, ancestors)
    builtin = getattr(builtins, name, None)
    if isinstance(builtin, type):
        found |= {one.__name__ for one in builtin.__mro__}
    abstract = getattr(collections.abc, name, None)
    return found | ({one.__name__ for one in abstract.__mro__} if isinstance(abstract, type) else set())
