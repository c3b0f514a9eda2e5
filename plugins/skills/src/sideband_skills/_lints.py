"""Lints: code that would fail at run time, found in the syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from sideband.active_skills import mapped_tools
from sideband.loading import UNUSABLE_MODULES, SkillSpec
from sideband.ops import Capability, CapabilityInvalid, SdkInvalid, sdk_functions
from sideband.suggestions import did_you_mean

from ._imports import DISPATCH, SDK_MODULE, Names
from ._problems import Problems, shown
from ._tool_discovery import Module

if TYPE_CHECKING:
    from sideband.ops import OpFamily, OpSpec

# The keyword arguments by function; `None` if any are accepted.
_Functions = Mapping[str, frozenset[str] | None]


def lint(spec: SkillSpec, modules: Sequence[Module], families: Iterable[OpFamily], problems: Problems) -> None:
    """Add problems for code that would fail at run time.

    Args:
        spec: the loaded skill.
        modules: its Python files.
        families: the installed op families; empty if unknown.
        problems: receives the problems.
    """
    families = tuple(families)
    known = {family.name: family for family in families}
    functions = {family.name: _functions(family) for family in families if _may_use(spec, family)}
    needed: dict[str, str] = {}
    declares = bool(spec.requirements)
    _check_python(spec, problems)
    _check_requirements(spec, problems)
    _check_allowed_tools(spec, problems)
    for module in modules:
        _check_imports(spec, module, problems, declares=declares)
        _check_async(module, problems)
        for use in _uses(module):
            problems.meter.check()
            _check_use(use, module, known, functions, problems)
            op = _op(use, known)
            if op is not None and op.requires:
                needed.setdefault(op.requires, op.name)
    requested = {Capability.parse(text).family for text in spec.capabilities}
    if known:
        _check_capabilities(spec, known, problems)
    for family, op_name in sorted(needed.items()):
        if family not in requested:
            problems.warn(
                "capability.missing",
                f"the code uses `{op_name}`, but the skill does not request `{family}`",
                f"add `sideband.capabilities: {family}:…` under `metadata`, as narrow as possible",
            )


def _check_capabilities(spec: SkillSpec, known: Mapping[str, OpFamily], problems: Problems) -> None:
    """Warn about capabilities with unknown families or fields, which no call could be granted."""
    for capability in map(Capability.parse, spec.capabilities):
        family = known.get(capability.family)
        if family is None:
            reason = f"unknown capability `{capability}`: no op family `{capability.family}` is installed"
            reason += did_you_mean(capability.family, known)
            problems.warn("capability.unknown", reason, "correct it, or install the package that provides the family")
            continue
        try:
            capability.fit(family.scope)
        except CapabilityInvalid as error:
            hint = "correct `sideband.capabilities` in SKILL.md"
            problems.warn("capability.unknown", error.message, hint)


@frozen
class _Use:
    """A use of an op: ``http.get(…)``, ``http.get`` without a call, or ``dispatch("http.get")``.

    Args:
        family: the name of the family.
        name: the name of the function, or the verb of the op that is dispatched.
        node: the expression that names it.
        call: the call, if the function is called.
        is_dispatched: whether ``dispatch`` is used.
    """

    family: str
    name: str
    node: ast.expr
    call: ast.Call | None
    is_dispatched: bool = False


def _uses(module: Module) -> Iterator[_Use]:
    calls = {call.func: call for call in module.nodes if isinstance(call, ast.Call)}
    for node in module.nodes:
        if isinstance(node, ast.Attribute):
            family = module.names.family(node.value)
            if family is not None:
                yield _Use(family, node.attr, node, calls.get(node))
        match node:
            case ast.Call(function, [ast.Constant(str(op)), *_]) if module.names.resolve(function) == DISPATCH:
                family, _, verb = op.partition(".")
                yield _Use(family, verb, function, None, is_dispatched=True)
            case _:
                pass


def _op(use: _Use, known: Mapping[str, OpFamily]) -> OpSpec | None:
    family = known.get(use.family)
    # the generated function of the op `x.import` is named `import_`
    return next((op for op in family.public_ops if op.verb == use.name.rstrip("_")), None) if family else None


def _may_use(spec: SkillSpec, family: OpFamily) -> bool:
    return spec.families is None or family.name in spec.families


def _functions(family: OpFamily) -> _Functions:
    """Return the arguments of the functions of a family, or nothing if its SDK is invalid."""
    try:
        return sdk_functions(family)
    except SdkInvalid:
        # Skills that import the family get the plugin's error.
        return {}


def _check_use(
    use: _Use,
    module: Module,
    known: Mapping[str, OpFamily],
    functions: Mapping[str, _Functions],
    problems: Problems,
) -> None:
    if not known:
        return
    where = f"line {use.node.lineno}"
    family = known.get(use.family)
    if family is None:
        problems.warn(
            "sdk.family",
            f"{where}: unknown op family `{use.family}`{did_you_mean(use.family, known)}",
            "install the plugin that provides it",
            file=module.path,
        )
        return
    verbs: _Functions = dict.fromkeys(spec.verb for spec in family.public_ops)
    names = verbs if use.is_dispatched else functions.get(use.family, {})
    if names and use.name not in names and not use.name.startswith("_"):
        problems.warn(
            "sdk.op",
            f"{where}: unknown op `{use.family}.{use.name}`{did_you_mean(use.name, names)}",
            f"`sideband ops list {use.family}` shows all ops of the family",
            file=module.path,
        )
        return
    accepted = names.get(use.name)
    if accepted is None or use.call is None:
        return
    shown_by = f"ops show {use.family}.{use.name}" if use.name in verbs else "sdk stubs"
    for keyword in use.call.keywords:
        if keyword.arg is not None and keyword.arg not in accepted:
            problems.warn(
                "sdk.argument",
                f"{where}: unknown argument `{keyword.arg}` of `{use.family}.{use.name}`"
                f"{did_you_mean(keyword.arg, accepted)}",
                f"`sideband {shown_by}` shows its parameters",
                file=module.path,
            )


def _check_python(spec: SkillSpec, problems: Problems) -> None:
    here = ".".join(map(str, sys.version_info[:3]))
    if not SpecifierSet(spec.requires_python).contains(here, prereleases=True):
        problems.warn("python.version", f"the skill requires Python {spec.requires_python}, but this is {here}")


def _check_allowed_tools(spec: SkillSpec, problems: Problems) -> None:
    for entry in mapped_tools(spec.allowed_tools)[1]:
        problems.warn(
            "allowed_tools.unknown",
            f"{shown(entry)} in `allowed-tools` means no tool here, so it pre-approves nothing",
            "patterns are supported for commands only, as in `Bash(git:*)`",
        )


def _check_requirements(spec: SkillSpec, problems: Problems) -> None:
    for text in spec.requirements:
        name = canonicalize_name(Requirement(text).name)
        module = name.removesuffix("-binary").replace("-", "_")
        if module in UNUSABLE_MODULES:
            problems.warn(
                "requirement.closed", f"the dependency `{name}` does not work in a worker", _instead_of(module)
            )


def _check_imports(spec: SkillSpec, module: Module, problems: Problems, *, declares: bool) -> None:
    own = {path.partition("/")[0].removesuffix(".py") for path in spec.files} | _neighbors(spec, module)
    for line, name in _imported(module.nodes):
        blocked = next((known for known in (name, *_parents(name)) if known in UNUSABLE_MODULES), None)
        root = name.partition(".")[0]
        if blocked is not None:
            hint = _instead_of(blocked)
            reason = f"line {line}: `{blocked}` does not work in a worker"
            problems.warn("import.closed", reason, hint, file=module.path)
        elif not (root in sys.stdlib_module_names or root in own or root in ("sideband", "agentos") or declares):
            problems.warn(
                "import.unknown",
                f"line {line}: `{root}` is not in the standard library and not declared as a dependency",
                "add the module to the skill's folder, or its package to a `# /// script` block",
                file=module.path,
            )


def _instead_of(module: str) -> str:
    family = UNUSABLE_MODULES[module]
    return f"use `{family}` from `{SDK_MODULE}`" if family else "remove it"


def _neighbors(spec: SkillSpec, module: Module) -> set[str]:
    """Return the modules beside a module with tools, whose folder is on the import path of the worker."""
    if not module.may_hold_tools:
        return set()
    folder = module.path.rpartition("/")[0]
    prefix = f"{folder}/" if folder else ""
    inside = (path.removeprefix(prefix) for path in spec.files if path.startswith(prefix))
    return {path.partition("/")[0].removesuffix(".py") for path in inside}


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.Import(names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(str(module), names, 0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case _:
                pass


def _check_async(module: Module, problems: Problems) -> None:
    for function in module.nodes:
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        problems.meter.check()
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and module.names.resolve(node.func) == "time.sleep":
                problems.warn(
                    "async.sleep",
                    f"line {node.lineno}: `time.sleep` blocks all calls of the worker",
                    "use `await asyncio.sleep(…)`",
                    file=module.path,
                )
        for call in _never_awaited(function, module.names):
            problems.warn(
                "async.await",
                f"line {call.lineno}: `{ast.unparse(call.func)}` is not awaited, so it is never executed",
                "add `await`",
                file=module.path,
            )


def _never_awaited(function: ast.AsyncFunctionDef, names: Names) -> Iterator[ast.Call]:
    """Yield op calls whose coroutine is discarded or used as if it were the result.

    A coroutine that is passed on, or assigned to a variable that is awaited or passed on later, may be awaited there.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    passed_on = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and not isinstance(parents.get(node), ast.Subscript | ast.Attribute | ast.Compare | ast.FormattedValue)
    }
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and _is_op_call(node, names)):
            continue
        match parents.get(node):
            case ast.Expr() | ast.Subscript() | ast.Attribute() | ast.Compare() | ast.FormattedValue() | ast.BinOp():
                yield node
            case ast.Assign([ast.Name(name)]) if name not in passed_on:
                yield node
            case _:
                pass


def _is_op_call(node: ast.Call, names: Names) -> bool:
    if isinstance(node.func, ast.Attribute) and names.family(node.func.value) is not None:
        return True
    return names.resolve(node.func) == DISPATCH
