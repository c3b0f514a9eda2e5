"""Discovery of a skill's tools in its syntax trees. No code of the skill is imported or evaluated."""

from __future__ import annotations

import ast
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from sideband.loading import ToolSpec
from sideband.ops import FromHost
from sideband.suggestions import did_you_mean

from ._annotations import AnnotationReader, literal_value
from ._argument_check import ArgumentCheck
from ._docstrings import Docstring, read_docstring
from ._imports import SDK_MODULE, Names, read_names
from ._parser import InvalidPython, PythonParser
from ._problems import Problems, shown
from ._result_check import ResultCheck
from ._script_blocks import ScriptBlock, find_blocks
from ._shape import Member, Shape
from ._shape_factories import described, structure
from ._skill_files import Identity, read_text
from ._skill_names import MAXIMUM_MODEL_NAME, NAME_PART

_AGENTOS_MARKS = frozenset({"connection", "provides", "returns", "timeout"})
_AGENTOS_TIMEOUT = 30.0
_MAXIMUM_SIGNATURE = 400
_MAXIMUM_SCHEMA = 64 << 10
_MAXIMUM_TOOLS = 256
_MAXIMUM_PLACES = 5
# A file without these words cannot import the SDK of sideband or AgentOS.
_SDK_WORDS = ("sideband", "agentos")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Module:
    """A parsed Python file of a skill.

    Attributes:
        path: the path in the skill's folder.
        tree: the syntax tree.
        nodes: all nodes of the tree.
        names: the imported names.
        has_marks: whether the file mentions `FromHost`.
    """

    path: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...] = field(repr=False)
    names: Names
    has_marks: bool

    @property
    def may_hold_tools(self) -> bool:
        """Whether the file is in the skill's folder itself or in ``scripts/``. Other files are helpers."""
        folder = self.path.rpartition("/")[0]
        return folder in ("", "scripts")


@frozen
class Tools:
    """The tools of a skill, sorted by name, and the op families that its code uses (``None`` if unknown)."""

    tools: tuple[ToolSpec, ...]
    families: tuple[str, ...] | None


@frozen
class PythonFiles:
    """The Python files of a skill: those that were parsed, and the metadata blocks of all by path."""

    modules: tuple[Module, ...]
    blocks: Mapping[str, list[ScriptBlock]]


def read_python(
    folder: Path, files: Mapping[str, Identity], problems: Problems, parser: PythonParser, *, everything: bool = False
) -> PythonFiles:
    """Read all ``*.py`` files. A file with a syntax error is reported, and the others load.

    Args:
        folder: the skill's folder.
        files: the identities of its files.
        problems: receives the problems.
        parser: parses the files.
        everything: whether to parse all files, instead of those that mention an SDK: no other file can use it.

    Raises:
        LimitReached: if the files exceed a limit.
    """
    modules = []
    blocks: dict[str, list[ScriptBlock]] = {}
    for path in sorted(path for path in files if path.endswith(".py")):
        problems.meter.check()
        text = read_text(folder, path, files[path], problems)
        if text is None:
            continue
        if "# ///" in text:
            blocks[path] = list(find_blocks(text))
        if everything or any(word in text for word in _SDK_WORDS):
            module = _parsed(path, text, problems, parser)
            modules += [module] if module else []
    return PythonFiles(tuple(modules), blocks)


def _parsed(path: str, text: str, problems: Problems, parser: PythonParser) -> Module | None:
    try:
        tree = parser.parse(text)
    except InvalidPython as error:
        problems.warn("python.syntax", f"`{path}` is not valid Python ({error}); its tools are skipped", file=path)
        return None
    nodes = tuple(ast.walk(tree))
    return Module(path, tree, nodes, read_names(nodes), FromHost.__name__ in text)


def find_tools(key: str, modules: Sequence[Module], problems: Problems, parser: PythonParser) -> Tools:
    """Find the tools in these modules, for the skill with the name part ``key``.

    Raises:
        LimitReached: if they exceed a limit.
    """
    found: dict[str, list[ToolSpec]] = {}
    families: set[str] = set()
    everything = False
    has_marks = any(module.has_marks for module in modules)
    for module in modules:
        families |= set(module.names.families.values())
        everything |= module.names.everything
        if module.may_hold_tools:
            for tool in _ToolReader(key, module, problems, parser, has_marks).read():
                found.setdefault(tool.name, []).append(tool)
                if sum(map(len, found.values())) > _MAXIMUM_TOOLS:
                    reason = f"the skill has more than {_MAXIMUM_TOOLS} tools; none of them is loaded"
                    problems.fail("tool.many", reason, "divide it into several skills")
                    return Tools((), None)
    for name, same in found.items():
        if len(same) > 1:
            places = " and in ".join(f"`{tool.module}`" for tool in same[:_MAXIMUM_PLACES])
            problems.fail(
                "tool.duplicate", f"duplicate tool `{name}` in {places}; none of them is loaded", "rename one"
            )
    tools = [same[0] for _, same in sorted(found.items()) if len(same) == 1]
    return Tools(tuple(tools), None if everything else tuple(sorted(families)))


class _Refused(Exception):
    """A function cannot be a tool."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@frozen
class _Mark:
    """The decorator that marks a function as a tool."""

    agentos: bool
    timeout: float | None = None


@define
class _ToolReader:
    """Reads the tools of one module.

    Args:
        key: the skill's name part.
        module: the module.
        problems: receives the problems.
        parser: parses quoted annotations.
        has_marks: whether a file of the skill mentions `FromHost`.
    """

    key: str
    module: Module
    problems: Problems
    parser: PythonParser
    has_marks: bool
    annotations: AnnotationReader = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.annotations = AnnotationReader.of(self.module.tree, self.module.names, self.parser)

    def read(self) -> Iterator[ToolSpec]:
        top_level = set(self.module.tree.body)
        for node in self.module.nodes:
            if not isinstance(node, Function):
                continue
            mark = self._mark(node)
            if mark is None:
                continue
            refusal = _refusal(self.key, node, top_level=node in top_level)
            tool = None
            try:
                tool = self._tool(node, mark) if refusal is None else None
            except _Refused as error:
                refusal = error.reason, error.hint
            if tool is not None:
                refusal = self._too_large(tool)
            if tool is not None and refusal is None:
                yield tool
            elif refusal is not None:
                reason, hint = refusal
                reason = f"`{node.name}` cannot be a tool: {reason}"
                self.problems.fail("tool.refused", reason, hint, file=self.module.path)
        if self.module.names.agentos:
            self._warn(
                "agentos.import",
                "the module imports `agentos`, which workers do not have; its tools are listed but cannot be called",
                f"import from `{SDK_MODULE}` instead",
            )

    def _warn(self, code: str, reason: str, hint: str = "") -> None:
        self.problems.warn(code, reason, hint, file=self.module.path)

    def _mark(self, node: Function) -> _Mark | None:
        mark: _Mark | None = None
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = self.module.names.resolve(call.func if call else decorator) or ""
            if name == f"{SDK_MODULE}.tool":
                mark = _Mark(agentos=False, timeout=self._tool_timeout(node, call) if call else None)
            elif name.startswith("agentos") and name.rpartition(".")[2] in _AGENTOS_MARKS:
                seconds = mark.timeout if mark else _AGENTOS_TIMEOUT
                if name.endswith(".timeout") and call and call.args:
                    seconds = self._seconds(node, call.args[0])
                mark = _Mark(agentos=True, timeout=seconds)
        return mark

    def _tool_timeout(self, node: Function, call: ast.Call) -> float | None:
        for keyword in call.keywords:
            if keyword.arg == "timeout":
                return self._seconds(node, keyword.value)
        odd = [keyword.arg or "**" for keyword in call.keywords]
        if call.args or odd:
            what = f"`{odd[0]}`{did_you_mean(odd[0], ['timeout'])}" if odd else "a positional argument"
            self._warn("tool.argument", f"`@tool` of `{node.name}` accepts only `timeout`, got {what}")
        return None

    def _seconds(self, node: Function, value: ast.expr) -> float | None:
        known, seconds = literal_value(value)
        if known and isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
            return float(seconds)
        if not (known and seconds is None):
            self._warn("tool.timeout", f"the timeout of `{node.name}` must be a positive number; it is ignored")
        return None

    def _tool(self, node: Function, mark: _Mark) -> ToolSpec:
        docstring = read_docstring(ast.get_docstring(node))
        if not docstring.summary:
            self._warn("tool.description", f"`{node.name}` has no docstring, so models get no description of it")
        if (node.args.vararg or node.args.kwarg) and not mark.agentos:
            self._warn(
                "tool.rest", f"`*` and `**` parameters of `{node.name}` are always empty", "declare named parameters"
            )
        members, schema, from_host = self._parameters(node, docstring)
        returns = self.annotations.read(node.returns, result=True).schema or None
        # Values of unknown types are not validated, so unknown types in the return annotation are not reported.
        self.annotations.unknown.clear()
        return ToolSpec(
            skill=self.key,
            name=node.name,
            module=self.module.path,
            description=docstring.summary,
            parameters=schema,
            validate=ArgumentCheck(structure(node.name, members, "").form, frozenset(from_host)),
            returns=returns,
            validate_result=None if returns is None else ResultCheck(returns),
            timeout=mark.timeout,
            signature=_signature(node, from_host),
            from_host=from_host,
        )

    def _too_large(self, tool: ToolSpec) -> tuple[str, str] | None:
        """Return the reason why a tool cannot be offered to a model, and a hint; ``None`` if it can."""
        try:
            size = len(json.dumps([tool.parameters, tool.returns, tool.description]))
        except ValueError:
            # an integer with thousands of digits
            return "a default value cannot be sent as JSON", "change it"
        if size > _MAXIMUM_SCHEMA:
            return f"its description and types exceed the limit of {_MAXIMUM_SCHEMA >> 10} KiB", "shorten them"
        self.problems.meter.add_text(size)
        return None

    def _parameters(
        self, node: Function, docstring: Docstring
    ) -> tuple[dict[str, Member], dict[str, Any], dict[str, str]]:
        """Return all parameters, the schema of those that callers may set, and the values of the others.

        Raises:
            _Refused: if a parameter is marked as a value of the host, but callers could set it.
        """
        members: dict[str, Member] = {}
        from_host: dict[str, str] = {}
        properties: dict[str, Mapping[str, Any]] = {}
        for argument, default in _arguments(node.args):
            self.problems.meter.check()
            shape = self.annotations.read(argument.annotation)
            value_of_host = self._value_of_host(argument, default)
            self._explain(node, argument, shape)
            if argument.arg in docstring.parameters:
                shape = described(shape, docstring.parameters[argument.arg])
            known, value = literal_value(default) if default is not None else (False, None)
            members[argument.arg] = Member(shape, required=default is None)
            if value_of_host is None:
                properties[argument.arg] = {**shape.schema, "default": value} if known else shape.schema
            else:
                from_host[argument.arg] = value_of_host
        self._check_described(node, docstring, members)
        required = [name for name, member in members.items() if member.required and name not in from_host]
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return members, {**schema, "required": required} if required else schema, from_host

    def _value_of_host(self, argument: ast.arg, default: ast.expr | None) -> str | None:
        marks = [*self.annotations.from_host, *self.annotations.marks([default] if default else [])]
        if self.has_marks and (hidden := [*self.annotations.unknown, *self.annotations.notes]):
            # A mark that is overlooked would let callers set the parameter.
            reason = f"the annotation of `{argument.arg}` contains {shown(hidden[0])}, which may be a `FromHost`"
            raise _Refused(reason, "write `FromHost(…)` in the signature, and define types in the same file")
        if not marks:
            return None
        match argument.annotation:
            case ast.Subscript(_, ast.Tuple([_, *notes])) if len(marks) == 1 and marks[0] in notes:
                pass
            case _:
                example = f'`{argument.arg}: Annotated[str, FromHost("principal")]`'
                raise _Refused(f"`FromHost` must mark the whole parameter `{argument.arg}`", f"write {example}")
        match marks[0]:
            case ast.Call(_, [ast.Constant(str(value))], []) if value in FromHost.values:
                return value
        known = ", ".join(FromHost.values)
        raise _Refused(f"{shown(ast.unparse(marks[0]))} is not a known value of the host", f"use one of {known}")

    def _check_described(self, node: Function, docstring: Docstring, members: Mapping[str, Member]) -> None:
        rest = {argument.arg for argument in (node.args.vararg, node.args.kwarg) if argument}
        for name in sorted(docstring.parameters.keys() - members.keys() - rest):
            self._warn(
                "docstring.parameter",
                f"the docstring of `{node.name}` describes an unknown parameter {shown(name)}"
                f"{did_you_mean(name, members)}",
            )

    def _explain(self, node: Function, argument: ast.arg, shape: Shape) -> None:
        """Report annotations that are missing, unknown, or not what the function receives."""
        place = f"`{argument.arg}` of `{node.name}`"
        if argument.annotation is None:
            self._warn("annotation.missing", f"{place} has no annotation; any value is accepted", "annotate it")
        for text in self.annotations.unknown:
            self._warn(
                "annotation.unknown",
                f"unknown type `{text}` of {place}; any value is accepted",
                "use built-in types, Literal, TypedDict, a dataclass or an Enum defined in the same file",
            )
        self.annotations.unknown.clear()
        if shape.plain:
            self._warn(
                "annotation.plain",
                f"{place} is received as {shape.plain}, since arguments are sent as JSON",
                "change the annotation, or convert the value in the function",
            )


def _refusal(key: str, node: Function, *, top_level: bool) -> tuple[str, str] | None:
    """Return the reason why a marked function cannot be a tool, and a hint; ``None`` if it can."""
    by_position = [argument.arg for argument in node.args.posonlyargs]
    too_long = len(f"{key}__{node.name}") > MAXIMUM_MODEL_NAME
    generator = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node))
    reasons = (
        (
            not top_level,
            "it is inside a class, another function or a block",
            "define it at the top level of the file",
        ),
        (isinstance(node, ast.FunctionDef), "it is not `async def`", "write `async def`, and `await` what it calls"),
        (node.name.startswith("_"), "its name begins with `_`", "rename it"),
        (not NAME_PART.match(node.name), "its name is not lower-case words joined with `_`", "rename it"),
        (too_long, f"`{key}__{node.name}` has more than {MAXIMUM_MODEL_NAME} characters", "shorten it"),
        (bool(by_position), f"the parameters {', '.join(by_position)} are positional-only", "remove the `/`"),
        (generator, "it is a generator", "return a list, and report progress with `progress.report`"),
    )
    return next(((reason, hint) for holds, reason, hint in reasons if holds), None)


def _own_nodes(node: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, except those inside nested functions and classes."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(current)


def _arguments(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    without_default = len(arguments.args) - len(arguments.defaults)
    yield from zip(arguments.args, [*([None] * without_default), *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _signature(node: Function, hidden: Container[str]) -> str:
    """Return the signature without the parameters that the host fills in."""
    given = [(one, default) for one, default in _arguments(node.args) if one.arg not in hidden]
    named = [(one, default) for one, default in given if one in node.args.kwonlyargs]
    placed = [pair for pair in given if pair not in named]
    visible = ast.arguments(
        posonlyargs=[],
        args=[one for one, _ in placed],
        defaults=[default for _, default in placed if default is not None],
        vararg=node.args.vararg,
        kwonlyargs=[one for one, _ in named],
        kw_defaults=[default for _, default in named],
        kwarg=node.args.kwarg,
    )
    try:
        arguments, returns = ast.unparse(visible), f" -> {ast.unparse(node.returns)}" if node.returns else ""
    except (RecursionError, ValueError):
        return f"{node.name}(…)"
    text = f"{node.name}({arguments}){returns}"
    return text if len(text) <= _MAXIMUM_SIGNATURE else f"{text[: _MAXIMUM_SIGNATURE - 1]}…"
