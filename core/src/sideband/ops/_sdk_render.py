"""Generate the Python module of an op family for skills: one `async def` per op, standard library only."""

from __future__ import annotations

import ast
import builtins
import threading
from collections.abc import Iterable
from pathlib import Path

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ._sdk_errors import BUILTINS, error_classes, errors_by_code, import_general, shared_errors
from ._sdk_functions import full_doc, function_name, parameters_of, signature
from ._sdk_schemas import params_schema, result_schema
from ._sdk_stub import stub_parts
from ._sdk_types import Annotator, docstring
from ._spec import OpFamily, OpSpec

PACKAGE = "sideband_sdk"
SHARED = "_shared_errors"
FAILED = '"""Generated: the plugin of this family could not be loaded."""\n\nraise ImportError({message})\n'


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

    Each op that is not internal becomes a coroutine function that sends only the arguments that were passed. Required
    parameters may be positional; optional ones are keyword-only and show the op's default. Names that are Python
    keywords get a trailing ``_``. Each of the family's errors becomes an exception class. The public names of
    ``family.sdk`` are added, and override functions of the same name.

    Raises:
        SdkInvalid: if ``family.sdk`` cannot be read or is not valid Python, or has the name of an error.
    """
    shadowed = _shadowed(family)
    extra = _extra_names_of(family)
    errors = error_classes(family.errors)
    names = sorted({*map(function_name, family.public_ops), *(one.name for one in errors), *extra})
    own, shared = [one for one in errors if not one.shared], [one.name for one in errors if one.shared]
    header = [
        docstring(family.doc or f"The ops of `{family.name}`, as functions.", indent=""),
        "",
        "from __future__ import annotations",
        "",
        *([f"import builtins as {BUILTINS}"] if shadowed or errors else []),
        "from typing import Any, Literal",
        "",
        import_general(own, "dispatch"),
        f"from {PACKAGE} import default as _default, given as _given",
        *([f"from {PACKAGE}.{SHARED} import {', '.join(shared)}"] if shared else []),
        "",
        f"__all__ = {names!r}",
    ]
    parts = ["\n".join(header), *(_function(spec, shadowed) for spec in family.public_ops)]
    parts += [one.in_module() for one in own]
    if errors:
        parts.append(errors_by_code(errors))
    types = [name for name in stub_parts(family, shadowed, extra).types.names if name not in names]
    if types:
        # Type checkers read these types in the stub. Here, they are what the results are.
        dictionary = f"{BUILTINS}.dict" if shadowed or errors else "dict"
        parts.append("\n".join(f"{name} = {dictionary}" for name in types))
    if extra:
        # Imported last, so that it can use and override the functions above.
        parts.append(f"from {PACKAGE}.{extra_module(family.name)} import {', '.join(extra)}")
    return _checked(family.name, "\n\n\n".join(parts) + "\n")


def render_stub(family: OpFamily) -> str:
    """Return the source of ``sideband_sdk/<family>.pyi``, which editors and type checkers read instead of the module.

    Results and nested parameters are typed dictionaries, named like the models of the ops. For the optional parameters
    of each op, there is one named like ``GetOptions``.

    Raises:
        SdkInvalid: see ``render_family``.
    """
    extra = _extra_names_of(family)
    found = stub_parts(family, _shadowed(family), extra)
    errors = error_classes(family.errors)
    own = [one for one in errors if not one.shared]
    header = [
        docstring(family.doc or f"The ops of `{family.name}`, as functions.", indent=""),
        "",
        f"import builtins as {BUILTINS}",
        "from typing import Any, Literal, NotRequired, TypedDict",
        "",
        import_general(own),
        *(f"from {PACKAGE}.{SHARED} import {one.name} as {one.name}" for one in errors if one.shared),
        *(f"from {PACKAGE}.{extra_module(family.name)} import {name} as {name}" for name in extra),
    ]
    parts = ["\n".join(header).rstrip(), *found.types.sources, *(one.in_stub() for one in own), *found.functions]
    return _checked(family.name, "\n\n".join(parts) + "\n")


def render_shared(families: Iterable[OpFamily], *, stub: bool) -> str | None:
    """Return the module, or the stub, of the errors that several families may declare, or ``None`` without any.

    Raises:
        SdkInvalid: if two of them have the same name or code.
    """
    try:
        errors = shared_errors(families)
    except ValueError as error:
        raise SdkInvalid(*error.args) from None
    if not errors:
        return None
    header = ['"""Errors that several families raise."""', f"import builtins as {BUILTINS}", import_general(errors)]
    classes = [one.in_stub() if stub else one.in_module() for one in errors]
    return "\n\n".join([*header, *classes, *([] if stub else [errors_by_code(errors)])]) + "\n"


def sdk_functions(family: OpFamily) -> dict[str, frozenset[str] | None]:
    """Return the public names of the family's SDK module, each with the keyword arguments that it accepts.

    The arguments are ``None`` if any are accepted, or if the name is not a function. Nothing is run.

    Raises:
        SdkInvalid: if the module cannot be generated.

    Example:
        >>> sdk_functions(family)["get"]
        frozenset({'url', 'headers'})
    """
    source = render_family(family)
    found = _signatures(source)
    for node in _parsed(source).body:
        match node:
            case ast.ImportFrom(_, names):
                found |= dict.fromkeys(one.name for one in names if one.asname is None)
            case ast.ClassDef(name) | ast.Assign([ast.Name(name)]) if not name.startswith("_"):
                found[name] = None
            case _:
                pass
    if family.sdk is not None:
        own = _signatures(family.sdk.read_text(encoding="utf-8"))
        found |= {name: own.get(name) for name in _extra_names(family.name, family.sdk)}
    return found


def _signatures(source: str) -> dict[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for node in _parsed(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = frozenset(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
            found[node.name] = None if node.args.kwarg or node.decorator_list else names
    return found


def _shadowed(family: OpFamily) -> frozenset[str]:
    return frozenset(spec.verb for spec in family.public_ops) & frozenset(dir(builtins))


def _function(spec: OpSpec, shadowed: frozenset[str]) -> str:
    """Return the source of the coroutine function for one op."""
    params = params_schema(spec)
    parameters = parameters_of(spec, Annotator(params.get("$defs", {}), shadowed), params)
    result = result_schema(spec)
    returns = Annotator(result.get("$defs", {}), shadowed).write(result)
    sent = ", ".join(f"{parameter.wire!r}: {parameter.name}" for parameter in parameters)
    answer = ", answer=False" if spec.fire_and_forget else ""
    body = f"    return await _dispatch({spec.name!r}, _given({{{sent}}}){answer})"
    first = signature(function_name(spec), parameters, returns, stub=False)
    return "\n".join([first, docstring(full_doc(spec, parameters), indent="    "), body])


def _extra_names_of(family: OpFamily) -> tuple[str, ...]:
    """Return the public names of ``family.sdk``, none of which may be that of an error."""
    extra = () if family.sdk is None else _extra_names(family.name, family.sdk)
    for error in family.errors:
        if error.__name__ in extra:
            raise SdkInvalid(family.name, f"its error `{error.__name__}` is also a name in its `sdk` module")
    return extra


def _extra_names(family: str, path: Path) -> tuple[str, ...]:
    """Return the public names of an op package's ``_sdk.py``, without running it."""
    try:
        tree = _parsed(path.read_text(encoding="utf-8"))
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


def _checked(family: str, source: str) -> str:
    try:
        compile(source, f"{PACKAGE}/{family}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SdkInvalid(family, str(error)) from error
    return source


_parsing = threading.Lock()


def _parsed(source: str) -> ast.Module:
    # Python 3.11 counts how deep all threads are that create syntax trees, and fails if two do so at once.
    with _parsing:
        return ast.parse(source)
