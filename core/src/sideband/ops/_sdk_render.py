"""Generate the Python module of an op family for skills: one `async def` per op, standard library only."""

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
    """No SDK can be generated for an op family: its ``sdk`` file or parameter names are not valid Python."""

    code = "sdk.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, family: str, problem: str) -> None:
        super().__init__(
            f"the SDK of `{family}` cannot be generated: {problem}", hint="report it to the plugin's author"
        )
        self.family = family


def extra_module(family: str) -> str:
    """Return the name of the SDK module that contains the ``_sdk.py`` of an op package."""
    return f"_{family}_extra"


def render_family(family: OpFamily) -> str:
    """Return the source of ``sideband_sdk/<family>.py``.

    Each op becomes a coroutine function that sends only the arguments that were passed. Required parameters may be
    positional; optional ones are keyword-only and show the op's default. Names that are Python keywords get a trailing
    ``_``. The public names of ``family.sdk`` are added, and override functions of the same name.

    Raises:
        SdkInvalid: if ``family.sdk`` cannot be read or is not valid Python.
    """
    shadowed = frozenset(spec.verb for spec in family.ops) & frozenset(dir(builtins))
    extra = _extra_names(family.name, family.sdk) if family.sdk is not None else ()
    names = sorted({*map(_function_name, family.ops), *extra})
    header = [
        _docstring(family.doc or f"The ops of `{family.name}`, as functions.", indent=""),
        # `_dispatch` returns `Any`.
        '# mypy: disable-error-code="no-any-return"',
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
        # Imported last, so that it can use and override the functions above.
        parts.append(f"from {PACKAGE}.{extra_module(family.name)} import {', '.join(extra)}")
    source = "\n\n\n".join(parts) + "\n"
    _check(family.name, source)
    return source


def sdk_functions(family: OpFamily) -> dict[str, frozenset[str] | None]:
    """Return the public names of the family's SDK module, each with the keyword arguments that it accepts.

    The arguments are ``None`` if any are accepted, or if the name is not a function. Nothing is run.

    Raises:
        SdkInvalid: if the module cannot be generated.

    Example:
        >>> sdk_functions(family)["get"]
        frozenset({'url', 'headers'})
    """
    found = _signatures(render_family(family))
    if family.sdk is not None:
        own = _signatures(family.sdk.read_text(encoding="utf-8"))
        found |= {name: own.get(name) for name in _extra_names(family.name, family.sdk)}
    return found


def _signatures(source: str) -> dict[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = frozenset(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
            found[node.name] = None if node.args.kwarg or node.decorator_list else names
    return found


@frozen
class _Parameter:
    """One parameter of a generated function, with its name on the wire."""

    name: str
    wire: str
    declaration: str
    required: bool
    description: str


def _function_name(spec: OpSpec) -> str:
    return spec.verb + "_" if keyword.iskeyword(spec.verb) else spec.verb


def _function(spec: OpSpec, shadowed: frozenset[str]) -> str:
    """Return the source of the coroutine function for one op."""
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
        # The handler's arguments are `params` and `ctx`, which the generated function does not have.
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
        """Ignore the warning. A default that is not JSON is shown as `...`; the op's author need not change it."""


def _params_schema(spec: OpSpec) -> Mapping[str, Any]:
    try:
        schema = spec.params.model_json_schema(schema_generator=_QuietJsonSchema)
    except PydanticInvalidForJsonSchema:
        # Types without a JSON schema, such as callables or custom classes: only the names are known.
        fields = {name: one for name, one in spec.params.model_fields.items() if name not in spec.from_host}
        return {
            "properties": {field.alias or name: {} for name, field in fields.items()},
            "required": [field.alias or name for name, field in fields.items() if field.is_required()],
        }
    if "$ref" in schema:
        # The schema of a recursive model is a reference.
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


def _docstring(doc: str, indent: str) -> str:
    """Return a docstring literal. Text that could break out of triple quotes is written with `repr`."""
    if not doc.replace("\n", "").isprintable() or "\\" in doc or '"""' in doc or doc.endswith('"'):
        return f"{indent}{doc!r}"
    lines = [f"{indent}{line}".rstrip() for line in doc.splitlines()]
    closing = f"\n{indent}" if len(lines) > 1 else ""
    return indent + '"""' + "\n".join(lines).strip() + closing + '"""'


def _extra_names(family: str, path: Path) -> tuple[str, ...]:
    """Return the public names of an op package's ``_sdk.py``, without running it."""
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
        raise SdkInvalid(family, f"`__all__` of `{path.name}` must be a literal list of names")
    return tuple(sorted(set(names)))


def _check(family: str, source: str) -> None:
    try:
        compile(source, f"{PACKAGE}/{family}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SdkInvalid(family, str(error)) from error
