"""Reads declarations from the source code: signatures, fields and aliases, as they are written there."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .docstrings import attributes, first_paragraph

__all__ = ["Field", "Member", "alias", "fields", "members", "signature"]

_FACTORIES = {"list": "[]", "dict": "{}", "tuple": "()", "set": "set()"}
_WIDTH = 100


class Field(NamedTuple):
    """One field of a class. Without a default, the default is empty."""

    name: str
    type: str
    default: str
    meaning: str


class Member(NamedTuple):
    """One public method or property of a class. The declaration of a property is its type."""

    name: str
    declaration: str
    doc: str
    is_property: bool


def fields(owner: type, documented: set[type]) -> Iterator[Field]:
    """Yield the public fields that a class declares or inherits from classes without an entry of their own."""
    found: dict[str, Field] = {}
    bases = _bases(owner, documented)
    meanings = {name: text for one in bases for name, text in attributes(one).items()}
    has_constructor = any("__init__" in vars(one) and not hasattr(one, "__attrs_attrs__") for one in bases)
    for one in bases:
        body = _body(one)
        for node, following in zip(body, [*body[1:], None], strict=True):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                    own = first_paragraph(_text_of(following)) or _options(node.value).get("description", "")
                    meaning = meanings.get(name) or own
                    kind = _type(node.annotation, one.__module__)
                    is_internal = has_constructor or kind.startswith("ClassVar") or "init=False" in ast.unparse(node)
                    if meaning or not is_internal:
                        found[name] = Field(name, kind, _default(node.value), meaning)
    yield from found.values()


def members(owner: type, documented: set[type]) -> Iterator[Member]:
    """Yield the public methods and properties of a class and its undocumented bases."""
    found: dict[str, Member] = {}
    for one in _bases(owner, documented):
        for node in _body(one):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("_"):
                    is_property = any(ast.unparse(one).endswith("property") for one in node.decorator_list)
                    found[name] = Member(
                        name, _declaration(name, node, is_property), ast.get_docstring(node) or "", is_property
                    )
    yield from found.values()


def signature(name: str, value: Any) -> str:
    """Return the declaration of a function, or the constructor of a class that defines ``__init__``; else nothing."""
    if not isinstance(value, type):
        return _declaration(name, _function(value), is_property=False)
    for one in value.__mro__:
        if one.__module__.startswith("sideband"):
            for node in _body(one):
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    return _declaration(name, node, is_property=False).removeprefix("def ").removesuffix(" -> None")
    return ""


def alias(module: str, name: str) -> tuple[str, str]:
    """Return the value and the description of a constant or type alias that a public module exports."""
    value = getattr(import_module(module), name)
    for one in [import_module(module), *map(sys.modules.get, sorted(sys.modules))]:
        if not one or not one.__name__.startswith("sideband") or getattr(one, name, None) is not value:
            continue
        path = inspect.getsourcefile(one) or ""
        body = _parsed(path).body
        for node, following in zip(body, [*body[1:], None], strict=True):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)) if (
                    target == name and node.value is not None
                ):
                    return ast.unparse(_resolved(node.value, path)), _text_of(following)
    return "", ""


def _bases(owner: type, documented: set[type]) -> list[type]:
    """Return a class and its bases that have no entry of their own, most general first."""
    own = [owner, *(one for one in owner.__mro__[1:] if one not in documented)]
    return [one for one in reversed(own) if one.__module__.startswith("sideband")]


def _body(owner: type) -> list[ast.stmt]:
    path = inspect.getsourcefile(import_module(owner.__module__)) or ""
    return _classes(path)[owner.__qualname__]


def _function(value: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101
    return node


def _declaration(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, is_property: bool) -> str:
    returned = ast.unparse(node.returns) if node.returns is not None else "None"
    if is_property:
        return returned
    parameters = [_spaced(one) for one in _split(ast.unparse(node.args)) if one not in {"", "self", "cls"}]
    start = f"{'async ' * isinstance(node, ast.AsyncFunctionDef)}def {name}("
    line = f"{start}{', '.join(parameters)}) -> {returned}"
    if len(line) <= _WIDTH:
        return line
    return f"{start}\n" + "".join(f"    {one},\n" for one in parameters) + f") -> {returned}"


def _spaced(parameter: str) -> str:
    """Put spaces around the equals sign of an annotated parameter with a default."""
    return re.sub(r"^(\w+: [^=]+)=", r"\1 = ", parameter)


def _split(text: str) -> Iterator[str]:
    """Split parameters at the commas outside of brackets and strings."""
    depth, start, quote = 0, 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()


def _options(value: ast.expr | None) -> dict[str, str]:
    """Return the texts that are passed to ``Field(…)`` by keyword."""
    keywords = value.keywords if isinstance(value, ast.Call) else []
    found = {one.arg: one.value.value for one in keywords if one.arg and isinstance(one.value, ast.Constant)}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _default(value: ast.expr | None) -> str:
    match value:
        case None:
            return ""
        case ast.Call(func=ast.Name(id="Factory"), args=[ast.Name(id=name)]):
            return _FACTORIES.get(name, f"{name}()")
        case ast.Call(func=ast.Name(id="field" | "Field"), args=arguments, keywords=keywords):
            given = {one.arg: one.value for one in keywords}
            if "default" in given:
                return ast.unparse(given["default"])
            factory = given.get("factory") or given.get("default_factory")
            if factory is not None:
                name = ast.unparse(factory)
                return _FACTORIES.get(name, f"{name}()" if name.isidentifier() else "computed")
            is_ellipsis = bool(arguments) and isinstance(arguments[0], ast.Constant) and arguments[0].value is ...
            return ast.unparse(arguments[0]) if arguments and not is_ellipsis else ""
    return ast.unparse(value)


def _type(annotation: ast.expr, module: str) -> str:
    return ast.unparse(_resolved(annotation, str(Path(inspect.getsourcefile(import_module(module)) or ""))))


def _resolved(node: ast.expr, path: str) -> ast.expr:
    """Replace private aliases of a module by their values, and ``Annotated[type, …]`` by its type."""
    assigned = _assigned(path)

    class Resolve(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.AST:
            known = name.id.startswith("_") and name.id in assigned
            return self.visit(ast.parse(assigned[name.id], mode="eval").body) if known else name

        def visit_Subscript(self, subscript: ast.Subscript) -> ast.AST:
            is_annotated = isinstance(subscript.value, ast.Name) and subscript.value.id == "Annotated"
            if is_annotated and isinstance(subscript.slice, ast.Tuple):
                return self.visit(subscript.slice.elts[0])
            return self.generic_visit(subscript)

    resolved = Resolve().visit(node)
    assert isinstance(resolved, ast.expr)  # noqa: S101
    return resolved


def _text_of(node: ast.stmt | None) -> str:
    """Return the text of a statement that is a docstring, or an empty string."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


@cache
def _assigned(path: str) -> dict[str, str]:
    return {
        node.targets[0].id: ast.unparse(node.value)
        for node in _parsed(path).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


@cache
def _classes(path: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of all classes of a module by qualified name.

    ``inspect.getsource`` would parse the module for each class again.
    """
    found: dict[str, list[ast.stmt]] = {}
    waiting: list[tuple[str, ast.AST]] = [("", _parsed(path))]
    while waiting:
        prefix, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[f"{prefix}{child.name}"] = child.body
                waiting.append((f"{prefix}{child.name}.", child))
            elif isinstance(child, ast.If | ast.Try):
                waiting.append((prefix, child))
    return found


@cache
def _parsed(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))
