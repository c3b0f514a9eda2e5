"""From an op family to the Python module that skills import: one `async def` per op, standard library only."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ._sdk_types import Annotator
from ._spec import OpFamily, OpSpec

PACKAGE = "sideband_sdk"
FAILED = '"""Generated: the plugin of this family could not be loaded."""\n\nraise ImportError({message})\n'

_LINE = 110
_ARGUMENTS = re.compile(r"^Args:[ \t]*\n(?:[ \t]+\S.*(?:\n|\Z))+", re.MULTILINE)
_CONTEXT_ARGUMENT = re.compile(r"^[ \t]+ctx: .*\n?", re.MULTILINE)
_HELPERS = frozenset({"_default", "_dispatch", "_given"})


class SdkInvalid(SidebandError, ValueError):
    """An op family can't be offered to skills: its ``sdk`` file, or the names of its parameters, are no Python."""

    code = "sdk.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, family: str, problem: str) -> None:
        super().__init__(
            f"the SDK of `{family}` can't be generated: {problem}", hint="report it to the plugin's author"
        )
        self.family = family


def extra_module(family: str) -> str:
    """The module in the SDK package that holds what an op package ships as its ``_sdk.py``."""
    return f"_{family}_extra"


def render_family(family: OpFamily) -> str:
    """The source of ``sideband_sdk/<family>.py``.

    Each op becomes a coroutine function that sends exactly the arguments it was given. Required parameters may be
    given by position; optional ones are keyword-only and show the op's default. A parameter whose name is a Python
    keyword gets a ``_`` at its end. The public names of ``family.sdk`` are part of the module, and win.

    Raises:
        SdkInvalid: ``family.sdk`` can't be read or is no Python.
    """
    shadowed = frozenset(spec.verb for spec in family.ops) & frozenset(dir(builtins))
    extra = _extra_names(family.name, family.sdk) if family.sdk is not None else ()
    names = sorted({*map(_function_name, family.ops), *extra})
    header = [
        _docstring(family.doc or f"The ops of `{family.name}`, as functions.", indent=""),
        "",
        "from __future__ import annotations",
        "",
        *(["import builtins as _builtins"] if shadowed else []),
        "from typing import Any, Literal",
        "",
        "from sideband.skill import dispatch as _dispatch",
        f"from {PACKAGE} import default as _default, given as _given",
        "",
        f"__all__ = {names!r}",
    ]
    parts = ["\n".join(header), *(_function(spec, shadowed) for spec in family.ops)]
    if extra:
        # at the end, so that it may build on the functions above, and override them
        parts.append(f"from {PACKAGE}.{extra_module(family.name)} import {', '.join(extra)}")
    source = "\n\n\n".join(parts) + "\n"
    _check(family.name, source)
    return source


@frozen
class _Parameter:
    """One argument of a generated function, and the name it has on the wire."""

    name: str
    wire: str
    declaration: str
    required: bool
    description: str


def _function_name(spec: OpSpec) -> str:
    return spec.verb + "_" if keyword.iskeyword(spec.verb) else spec.verb


def _function(spec: OpSpec, shadowed: frozenset[str]) -> str:
    """The source of the coroutine function for one op."""
    parameters = _parameters(spec, shadowed)
    result = _result_schema(spec)
    returns = Annotator(result.get("$defs", {}), shadowed).write(result)
    arguments = [parameter.declaration for parameter in parameters if parameter.required]
    optional = [parameter.declaration for parameter in parameters if not parameter.required]
    if optional:
        arguments += ["*", *optional]
    signature = f"async def {_function_name(spec)}({', '.join(arguments)}) -> {returns}:"
    if len(signature) > _LINE:
        lines = [f"    {argument}," for argument in arguments]
        signature = "\n".join([f"async def {_function_name(spec)}(", *lines, f") -> {returns}:"])
    sent = ", ".join(f"{parameter.wire!r}: {parameter.name}" for parameter in parameters)
    answer = ", answer=False" if spec.fire_and_forget else ""
    body = f"    return await _dispatch({spec.name!r}, _given({{{sent}}}){answer})"
    return "\n".join([signature, _docstring(_full_doc(spec, parameters), indent="    "), body])


def _full_doc(spec: OpSpec, parameters: Sequence[_Parameter]) -> str:
    doc = spec.doc or f"Run `{spec.name}`."
    described = [parameter for parameter in parameters if parameter.description]
    if not described:
        return _CONTEXT_ARGUMENT.sub("", doc)
    lines = [f"    {parameter.name}: {' '.join(parameter.description.split())}" for parameter in described]
    section = "\n".join(["Args:", *lines, ""])
    if _ARGUMENTS.search(doc):
        # those of the handler are `params` and `ctx`, which nobody who calls this has
        return _ARGUMENTS.sub(lambda _: section, doc, count=1)
    return f"{doc}\n\n{section}"


def _parameters(spec: OpSpec, shadowed: frozenset[str]) -> tuple[_Parameter, ...]:
    schema = _params_schema(spec)
    required = set(schema.get("required", ()))
    annotator = Annotator(schema.get("$defs", {}), shadowed)
    used: set[str] = set()
    parameters = []
    for wire, field in schema.get("properties", {}).items():
        name = _identifier(wire, used)
        used.add(name)
        declaration = f"{name}: {annotator.write(field)}"
        if wire not in required:
            declaration += f" = _default({_literal(field['default']) if 'default' in field else ''})"
        parameters.append(_Parameter(name, wire, declaration, wire in required, str(field.get("description", ""))))
    return tuple(parameters)


class _QuietJsonSchema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Say nothing: a default without a JSON form is shown as `...`, and the op's author can't change that."""


def _params_schema(spec: OpSpec) -> Mapping[str, Any]:
    try:
        schema = spec.params.model_json_schema(schema_generator=_QuietJsonSchema)
    except PydanticInvalidForJsonSchema:
        # a type without a JSON form (a callable, a class of the plugin's own) still has a name
        fields = spec.params.model_fields
        return {
            "properties": {field.alias or name: {} for name, field in fields.items()},
            "required": [field.alias or name for name, field in fields.items() if field.is_required()],
        }
    if "$ref" in schema:
        # a model that contains itself is only a reference at the top
        return {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    return schema


def _result_schema(spec: OpSpec) -> Mapping[str, Any]:
    try:
        return TypeAdapter(spec.result).json_schema(mode="serialization", schema_generator=_QuietJsonSchema)
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
        return {}


def _identifier(wire: str, used: set[str]) -> str:
    name = re.sub(r"\W", "_", wire, flags=re.ASCII) or "_"
    if name[0].isdigit():
        name = f"_{name}"
    while keyword.iskeyword(name) or name in used or name in _HELPERS or name.startswith("__"):
        # two leading underscores and the names of the helpers belong to the generated module
        name = f"{name.lstrip('_')}_" if name.startswith("__") else f"{name}_"
    return name


def _literal(value: Any) -> str:
    """A default as source, or nothing where it has no literal."""
    try:
        text = repr(value)
        return text if ast.literal_eval(text) == value else ""
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""


def _docstring(doc: str, indent: str) -> str:
    """A docstring that reads well, and is never more than a docstring, whatever the text."""
    if not doc.replace("\n", "").isprintable() or "\\" in doc or '"""' in doc or doc.endswith('"'):
        return f"{indent}{doc!r}"  # it would end early, or say something else
    lines = [f"{indent}{line}".rstrip() for line in doc.splitlines()]
    closing = f"\n{indent}" if len(lines) > 1 else ""
    return indent + '"""' + "\n".join(lines).strip() + closing + '"""'


def _extra_names(family: str, path: Path) -> tuple[str, ...]:
    """The public names of an op package's own module, read without running it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise SdkInvalid(family, f"`{path.name}`: {error}") from error
    defined: list[str] = []
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name("__all__")], value) | ast.AnnAssign(ast.Name("__all__"), _, ast.expr() as value):
                return _literal_names(family, path, value)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                defined.append(name)
            case ast.Assign(targets):
                defined += [target.id for target in targets if isinstance(target, ast.Name)]
    return tuple(sorted({name for name in defined if not name.startswith("_")}))


def _literal_names(family: str, path: Path, value: ast.expr) -> tuple[str, ...]:
    try:
        names = ast.literal_eval(value)
    except ValueError:
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise SdkInvalid(family, f"`__all__` of `{path.name}` is no literal list of names")
    return tuple(sorted(set(names)))


def _check(family: str, source: str) -> None:
    try:
        compile(source, f"{PACKAGE}/{family}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SdkInvalid(family, str(error)) from error
