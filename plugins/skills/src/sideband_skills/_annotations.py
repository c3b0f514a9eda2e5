"""Translation of annotations to shapes: a walk over the syntax tree that supports fixed types and evaluates nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import Factory, define, evolve

from ._imports import Names
from ._parser import InvalidPython, PythonParser
from ._shape import Member, Shape
from ._shape_factories import (
    ANYTHING,
    KNOWN,
    NOTHING,
    OBJECT,
    SAME,
    array,
    choice,
    described,
    distinct,
    fixed,
    mapping,
    structure,
    union,
)

_MAXIMUM_DEPTH = 24
_MAXIMUM_NODES = 400
_MAXIMUM_QUOTED = 2_000
_WRAPPERS = frozenset({"typing.Required", "typing.NotRequired", "typing.Final", "typing.ReadOnly"})
_STRUCTURES = frozenset({"typing.TypedDict", "typing.NamedTuple"})
_FROM_HOST = "FromHost"
_ENUMERATIONS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum"})


def literal_value(node: ast.expr) -> tuple[bool, Any]:
    """Return whether an expression is a literal that JSON supports, and its value."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False, None
    return (True, value) if _is_json(value) else (False, None)


def _is_json(value: Any) -> bool:
    match value:
        case None | bool() | int() | str():
            return True
        case float():
            return value == value and value not in (float("inf"), float("-inf"))  # noqa: PLR0124 - not a number
        case list():
            return all(_is_json(item) for item in value)
        case dict():
            return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
        case _:
            return False


class _TooManyTypes(Exception):
    """An annotation has too many parts, or expands to them."""


@define
class AnnotationReader:
    """Reads the annotations of one module.

    Args:
        names: the imported names of the module.
        classes: its top-level classes.
        aliases: its top-level assignments, such as ``Level = Literal["low", "high"]``.
        parser: parses quoted annotations.

    Attributes:
        unknown: the types that were not understood, since it was last cleared.
        from_host: the marks `FromHost(…)` in the last annotation.
        notes: the notes of `Annotated` in the last annotation that were not understood.
    """

    names: Names
    classes: Mapping[str, ast.ClassDef]
    aliases: Mapping[str, ast.expr]
    parser: PythonParser
    unknown: list[str] = Factory(list)
    from_host: list[ast.Call] = Factory(list)
    notes: list[str] = Factory(list)
    _stack: list[str] = Factory(list)
    _nodes: int = 0
    _result: bool = False
    _quoted: dict[str, ast.expr | None] = Factory(dict)

    @classmethod
    def of(cls, tree: ast.Module, names: Names, parser: PythonParser) -> AnnotationReader:
        """Create a reader for a module."""
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        aliases: dict[str, ast.expr] = {}
        for node in tree.body:
            match node:
                case ast.Assign([ast.Name(name)], value):
                    aliases[name] = value
                case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                    aliases[name] = value
                case _ if type(node).__name__ == "TypeAlias":  # the statement `type X = …` of Python 3.12
                    aliases[node.name.id] = node.value  # type: ignore[attr-defined]
        return cls(names, classes, aliases, parser)

    def read(self, annotation: ast.expr | None, *, result: bool = False) -> Shape:
        """Return the shape of an annotation. Unknown types become ``ANYTHING`` and are added to ``unknown``.

        Args:
            annotation: the annotation, or ``None``, which accepts any value.
            result: whether it describes what a function returns: named tuples are sent as lists, and objects may have
                more keys.
        """
        self._nodes = 0
        self._result = result
        self.from_host, self.notes = [], []
        try:
            return ANYTHING if annotation is None else self._read(annotation)
        except _TooManyTypes:
            self.unknown.append("…")
            return ANYTHING

    def _count(self, nodes: int = 1) -> None:
        """Stop types built to expand exponentially, or that name thousands of others."""
        self._nodes += nodes
        if self._nodes > _MAXIMUM_NODES:
            raise _TooManyTypes

    def _read(self, node: ast.expr) -> Shape:
        self._count()
        # stops recursive types
        if len(self._stack) > _MAXIMUM_DEPTH:
            return self._give_up(node)
        self._stack.append("")
        try:
            return self._read_form(node)
        finally:
            self._stack.pop()

    def _read_form(self, node: ast.expr) -> Shape:
        match node:
            case ast.Constant(None):
                return NOTHING
            case ast.Constant(str(text)):
                return self._read_quoted(node, text)
            case ast.Name() | ast.Attribute():
                return self._read_name(node)
            case ast.BinOp(left, ast.BitOr(), right):
                return union([self._read(left), self._read(right)])
            case ast.Subscript(value, inner):
                arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return self._read_generic(node, self._full_name(value), arguments)
            case _:
                return self._give_up(node)

    def _give_up(self, node: ast.expr) -> Shape:
        self.unknown.append(_text(node))
        return ANYTHING

    def _full_name(self, node: ast.expr) -> str:
        name = self.names.resolve(node) or ""
        return name.replace("typing_extensions.", "typing.", 1)

    def _read_quoted(self, node: ast.expr, text: str) -> Shape:
        if text not in self._quoted:
            self._quoted[text] = self._parsed(text)
        parsed = self._quoted[text]
        return self._give_up(node) if parsed is None else self._read(parsed)

    def _parsed(self, text: str) -> ast.expr | None:
        """Return the expression of a quoted annotation, or ``None`` if it is not one."""
        try:
            tree = self.parser.parse(text[:_MAXIMUM_QUOTED].strip())
        except InvalidPython:
            return None
        match tree.body:
            case [ast.Expr(expression)]:
                return expression
            case _:
                return None

    def _read_name(self, node: ast.Name | ast.Attribute) -> Shape:
        name = self._full_name(node)
        if name in self._stack:
            # a recursive type, which is expanded only once
            return OBJECT if name in self.classes else ANYTHING
        if name in self.classes:
            return self._within(name, lambda: self._read_class(node, self.classes[name]))
        if name in self.aliases:
            return self._within(name, lambda: self._read(self.aliases[name]))
        return KNOWN.get(SAME.get(name, name)) or self._give_up(node)

    def _within(self, name: str, read: Callable[[], Shape]) -> Shape:
        self._stack.append(name)
        try:
            return read()
        finally:
            self._stack.pop()

    def _read_generic(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> Shape:
        match SAME.get(name, name), arguments:
            case "typing.Optional", [inner]:
                shape = union([self._read(inner), NOTHING])
            case "typing.Union", [*options] if options:
                shape = union([self._read(option) for option in options])
            case "typing.Literal", [*values] if values:
                shape = self._read_literal(node, values)
            case "typing.Annotated", [inner, *notes]:
                self.from_host += self.marks(notes)
                shape = _with_description(self._read(inner), notes)
            case "list", [item]:
                shape = array(self._read(item))
            case "set", [item]:
                shape = distinct(self._read(item))
            case "tuple", [item, ast.Constant(value)] if value is Ellipsis:
                shape = array(self._read(item))
            case "tuple", [*items]:
                shape = fixed([self._read(item) for item in items])
            case "dict", [key, value]:
                shape = self._read_mapping(key, value)
            case wrapper, [inner] if wrapper in _WRAPPERS:
                shape = self._read(inner)
            case _:
                shape = self._give_up(node)
        return shape

    def marks(self, notes: Iterable[ast.expr]) -> Iterator[ast.Call]:
        """Yield the marks `FromHost(…)` among notes of `Annotated`. Notes that are not understood are kept."""
        for note in notes:
            made = self.aliases.get(note.id, note) if isinstance(note, ast.Name) else note
            if isinstance(made, ast.Call) and (self.names.resolve(made.func) or "").rpartition(".")[2] == _FROM_HOST:
                yield made
            elif not isinstance(made, ast.Constant):
                self.notes.append(_text(note))

    def _read_mapping(self, key: ast.expr, value: ast.expr) -> Shape:
        if self._full_name(key) not in ("str", "typing.Any"):
            # the keys of JSON objects are strings
            self._give_up(key)
        return mapping(self._read(value))

    def _read_literal(self, node: ast.expr, nodes: list[ast.expr]) -> Shape:
        values = []
        self._count(len(nodes))
        for value_node in nodes:
            known, value = literal_value(value_node)
            if not known or isinstance(value, list | dict | float):
                return self._give_up(node)
            values.append(value)
        return choice(values)

    def _read_class(self, node: ast.expr, definition: ast.ClassDef) -> Shape:
        lineage = list(self._lineage(definition))
        bases = {self._full_name(base) for ancestor in lineage for base in ancestor.bases}
        if bases & _ENUMERATIONS:
            return self._read_enumeration(node, definition)
        if not (bases & _STRUCTURES or any(map(self._is_dataclass, lineage))):
            return self._give_up(node)
        fields: dict[str, Member] = {}
        for ancestor in reversed(lineage):
            fields |= self._fields(ancestor)
        if not self._result:
            return structure(definition.name, fields, "" if "typing.TypedDict" in bases else "a dict")
        if "typing.NamedTuple" in bases:
            return fixed([member.shape for member in fields.values()])
        shape = structure(definition.name, fields, "")
        return evolve(
            shape, schema={key: value for key, value in shape.schema.items() if key != "additionalProperties"}
        )

    def _lineage(self, definition: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """Yield the class and its bases, as far as they are defined in this module."""
        waiting, seen = [definition], set[str]()
        while waiting:
            current = waiting.pop()
            if current.name not in seen:
                self._count()
                seen.add(current.name)
                yield current
                names = map(self._full_name, current.bases)
                waiting += [self.classes[name] for name in names if name in self.classes]

    def _is_dataclass(self, definition: ast.ClassDef) -> bool:
        decorators = [node.func if isinstance(node, ast.Call) else node for node in definition.decorator_list]
        return "dataclasses.dataclass" in map(self._full_name, decorators)

    def _fields(self, definition: ast.ClassDef) -> dict[str, Member]:
        total = not any(keyword.arg == "total" and _is_false(keyword.value) for keyword in definition.keywords)
        fields: dict[str, Member] = {}
        for statement in definition.body:
            match statement:
                case ast.AnnAssign(ast.Name(name), annotation, default):
                    optional = default is not None or self._wraps(annotation, "typing.NotRequired")
                    required = not optional and (total or self._wraps(annotation, "typing.Required"))
                    fields[name] = Member(self._read(annotation), required)
                case _:
                    pass
        return fields

    def _wraps(self, annotation: ast.expr, name: str) -> bool:
        return isinstance(annotation, ast.Subscript) and self._full_name(annotation.value) == name

    def _read_enumeration(self, node: ast.expr, definition: ast.ClassDef) -> Shape:
        values = []
        self._count(len(definition.body))
        for statement in definition.body:
            match statement:
                case ast.Assign([ast.Name(name)], value_node) if not name.startswith("_"):
                    known, value = literal_value(value_node)
                    if not known or isinstance(value, list | dict | float):
                        return self._give_up(node)
                    values.append(value)
                case _:
                    pass
        return choice(values, "its value") if values else self._give_up(node)


def _text(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:80]
    except (RecursionError, ValueError):
        return "…"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _with_description(shape: Shape, notes: list[ast.expr]) -> Shape:
    texts = [note.value for note in notes if isinstance(note, ast.Constant) and isinstance(note.value, str)]
    return described(shape, texts[0]) if texts else shape
