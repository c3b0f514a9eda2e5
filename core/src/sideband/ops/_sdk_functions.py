"""The functions of a generated SDK module: their parameters, names and docstrings."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ._sdk_schemas import params_schema
from ._sdk_types import Annotator
from ._spec import OpSpec

_LINE = 110
_ARGUMENTS = re.compile(r"^Args:[ \t]*\n(?:[ \t]+\S.*(?:\n|\Z))+", re.MULTILINE)
_CONTEXT_ARGUMENT = re.compile(r"^[ \t]+ctx: .*\n?", re.MULTILINE)
_HELPERS = frozenset({"_default", "_dispatch", "_given"})
# A default that a type checker accepts for the annotation of its parameter. In a stub, others are `...`.
_TYPES_OF_DEFAULTS = {"None": "None", "True": "bool", "False": "bool"}


@frozen
class Parameter:
    """One parameter of a generated function.

    Args:
        name: its name in Python.
        wire: its name on the wire.
        annotation: its annotation.
        default: its default as source text; empty if it is missing or not a literal.
        required: whether it is required.
        description: its description.
    """

    name: str
    wire: str
    annotation: str
    default: str
    required: bool
    description: str

    def in_stub(self) -> str:
        """Return the declaration in a stub."""
        if self.required:
            return f"{self.name}: {self.annotation}"
        return f"{self.name}: {self.annotation} = {self.default if self._is_typed() else '...'}"

    def in_module(self) -> str:
        """Return the declaration in a module, where a default only shows what is omitted."""
        declaration = f"{self.name}: {self.annotation}"
        return declaration if self.required else f"{declaration} = _default({self.default})"

    def _is_typed(self) -> bool:
        kind = _TYPES_OF_DEFAULTS.get(self.default)
        if kind is None and self.default:
            kind = type(ast.literal_eval(self.default)).__name__
        if self.default in (
            one for part in re.findall(r"Literal\[(.*?)\]", self.annotation) for one in part.split(", ")
        ):
            return True
        plain = re.sub(r"Literal\[.*?\]", "", self.annotation)
        return kind in ("None", "bool", "int", "float", "str") and kind in re.split(r"[ |]+", plain)


def function_name(spec: OpSpec) -> str:
    """Return the name of the function of an op."""
    return spec.verb + "_" if keyword.iskeyword(spec.verb) else spec.verb


def signature(name: str, parameters: Sequence[Parameter], returns: str, *, stub: bool) -> str:
    """Return the first lines of a coroutine function, up to the colon."""
    written = {one: one.in_stub() if stub else one.in_module() for one in parameters}
    arguments = [text for one, text in written.items() if one.required]
    optional = [text for one, text in written.items() if not one.required]
    if optional:
        arguments += ["*", *optional]
    line = f"async def {name}({', '.join(arguments)}) -> {returns}:"
    if len(line) <= _LINE:
        return line
    return "\n".join([f"async def {name}(", *(f"    {argument}," for argument in arguments), f") -> {returns}:"])


def full_doc(spec: OpSpec, parameters: Sequence[Parameter]) -> str:
    """Return the docstring of an op with the descriptions of its parameters."""
    doc = spec.doc or f"Run `{spec.name}`."
    described = [parameter for parameter in parameters if parameter.description]
    if not described:
        return _CONTEXT_ARGUMENT.sub("", doc)
    lines = [f"    {parameter.name}: {' '.join(parameter.description.split())}" for parameter in described]
    section = "\n".join(["Args:", *lines, ""])
    if _ARGUMENTS.search(doc):
        # The handler's arguments are `params` and `ctx`, which the generated function does not have.
        return _ARGUMENTS.sub(lambda _: section, doc, count=1)
    return f"{doc}\n\n{section}"


def parameters_of(spec: OpSpec, annotator: Annotator, schema: Mapping[str, Any] | None = None) -> tuple[Parameter, ...]:
    """Return the parameters of the function of an op.

    Args:
        spec: the op.
        annotator: writes the annotations, with the definitions of the schema.
        schema: the schema of its parameters, if it is known.
    """
    schema = params_schema(spec) if schema is None else schema
    required = set(schema.get("required", ()))
    used: set[str] = set()
    parameters = []
    for wire, field in schema.get("properties", {}).items():
        name = _identifier(wire, used)
        used.add(name)
        default = "" if wire in required or "default" not in field else _literal(field["default"])
        description = str(field.get("description", ""))
        parameters.append(Parameter(name, wire, annotator.write(field), default, wire in required, description))
    return tuple(parameters)


def _identifier(wire: str, used: set[str]) -> str:
    name = re.sub(r"\W", "_", wire, flags=re.ASCII) or "_"
    if name[0].isdigit():
        name = f"_{name}"
    while keyword.iskeyword(name) or name in used or name in _HELPERS or name.startswith("__"):
        # Names with two leading underscores and the names of helpers are reserved for the generated module.
        name = f"{name.lstrip('_')}_" if name.startswith("__") else f"{name}_"
    return name


def _literal(value: Any) -> str:
    """Return a default value as a literal, or an empty string if it has no literal."""
    try:
        text = repr(value)
        return text if ast.literal_eval(text) == value else ""
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
