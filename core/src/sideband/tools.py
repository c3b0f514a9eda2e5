"""Tools, which models may call, and immutable views of tools, which can only be narrowed.

A tool is a plugin in the group ``sideband.v1.tool``: ``sideband_tools()`` returns a list of tools and of sources of
tools, or the entry point is a ``Tool`` itself. The host creates the tools of skills with the same interface.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import Any, Literal, Protocol, TypeGuard

from attrs import field, frozen
from pydantic import ValidationError

from .contexts import PluginContext, ToolContext, emit_tool_progress, emit_tool_progress_closed
from .hooks._frozen import freeze
from .loading import STRICTER, Resume
from .models._pieces import CarryingTuple
from .ops import FromHost, Level, Origin
from .ops._declaration import check_name, check_options, params_model
from .ops._from_host import check_host_values, host_parameters, with_host_values
from .providers import ToolSchema
from .validation import problem_text

__all__ = [
    "RESULT_LIMITS",
    "SCHEMA_LIMIT",
    "FromHost",
    "OpenedSource",
    "ResultLimits",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolSource",
    "ToolView",
    "emit_tool_progress",
    "emit_tool_progress_closed",
    "is_tool_name",
    "is_tool_source",
    "tool",
]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)?\Z")
_MAX_NAME = 64
NAME_RULE = f"`name` or `family.name`, each of lower-case words joined by `_`, at most {_MAX_NAME} characters"

SCHEMA_LIMIT = 65_536
"""The maximum length of a tool's description and parameters as JSON, in characters. Every model request has them."""


@frozen
class ResultLimits:
    """The limits of a tool's result. The part of a long text that a model sees is limited by ``output_tokens``.

    Attributes:
        characters: the maximum length of the text that is stored under a handle. The middle of a longer text is
            omitted.
        images: the maximum number of images. Further images are omitted.
        image: the maximum size of one image in bytes. An image is also omitted if its content does not match its media
            type, or if it is not a PNG, JPEG, GIF or WebP: models would reject every request that contains it.
        metadata: the maximum length of the metadata as JSON, in characters. Longer metadata is dropped entirely.
    """

    characters: int = 16 << 20
    images: int = 20
    image: int = 5 << 20
    metadata: int = 16_384


RESULT_LIMITS = ResultLimits()
"""The limits that apply to every result."""


@frozen
class ToolOutput:
    """A tool's result with additional information.

    Args:
        content: text, JSON data, or a list of message parts (``TextPart``, ``ImagePart``).
        is_error: whether the tool failed. The content states the reason.
        terminate: whether the run may end with this result instead of another model call.
        metadata: data that is stored with the result but not sent to the model. Keys that the host sets itself, such as
            ``effect``, ``ms``, ``output``, ``code`` and ``unknown``, are ignored.
    """

    content: Any
    is_error: bool = False
    terminate: bool = False
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen
class Tool:
    """One tool.

    Attributes:
        name: ``memory``, or ``github.stars``. The part before the dot is a namespace, which belongs to one distribution
            if plugins provide it: the one whose plugin has that name, else the only one with tools in it.
        description: the description for the model: what the tool does, and when to use it.
        parameters: a JSON Schema object.
        validate: a function that validates and coerces arguments. It raises a ``ValueError`` whose message names each
            invalid argument.
        run: a function that runs the tool with validated arguments. It returns text, JSON data, or a ``ToolOutput``.
            The model sees the message of an exception.
        level: the highest level of its effects.
        read_only: whether the tool has no side effects. A repeated call with the same result then counts as no
            progress.
        exclusive: whether no other call may run at the same time.
        timeout: the maximum duration in seconds, or ``None`` for the host's default.
        resume: what happens to a call that its host's death interrupted, unless `[policy] resume` is stricter:
            ``replay`` runs it again and answers its recorded effects from the record, so all its effects must be
            dispatched through the context; ``ask`` asks first; ``never`` reports that its outcome is unknown.
        source: the origin of the tool: ``skill github``, ``plugin memory``, ``source tickets``. The host sets it.
        from_host: the parameters that the host fills in, each with the name of its value (``FromHost``). They are not
            part of ``parameters``.

    Raises:
        TypeError: if an option is invalid, or ``from_host`` contains an unknown value. It also is if a class is derived
            from this one, which could change what was checked.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]] = field(repr=False, eq=False)
    run: Callable[[dict[str, Any], ToolContext], Awaitable[Any]] = field(repr=False, eq=False)
    level: Level = Level.MONITORED
    read_only: bool = False
    exclusive: bool = False
    timeout: float | None = None
    resume: Resume = "never"
    source: str = ""
    from_host: Mapping[str, str] = field(factory=dict)

    def __init_subclass__(cls) -> None:
        raise TypeError("no class may be derived from `Tool`")

    def __attrs_post_init__(self) -> None:
        declared = f"tool `{self.name}`"
        check_options(declared, self.level, self.timeout)
        if self.resume not in STRICTER:
            raise TypeError(f"{declared}: `resume` must be one of {', '.join(STRICTER)}, got {self.resume!r}")
        check_host_values(declared, self.from_host)

    def filled(self, arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Return the arguments with the values of the host, whatever the caller passed for them.

        An agent calls it before ``validate``, also for arguments that a guard has replaced.
        """
        return with_host_values(self.from_host, arguments, origin)

    @property
    def model_name(self) -> str:
        """The name that models see: ``github__stars``."""
        return self.name.replace(".", "__")

    @cached_property
    def schema(self) -> ToolSchema:
        """The schema of the tool for model requests, which share it: its parameters are immutable."""
        made = ToolSchema(name=self.model_name, description=self.description, parameters=dict(self.parameters))
        return made.model_copy(update={"parameters": freeze(made.parameters)})

    @cached_property
    def schema_size(self) -> int:
        """The length of the schema as JSON, in characters."""
        return len(self.schema.model_dump_json())


def tool(
    name: str,
    *,
    level: Level = Level.MONITORED,
    read_only: bool = False,
    exclusive: bool = False,
    timeout: float | None = None,
    resume: Resume = "never",
) -> Callable[[Callable[[Any, ToolContext], Awaitable[Any]]], Tool]:
    """Declare a tool. The annotation of the function's first parameter is a pydantic model of the tool's parameters.

    The docstring of the function is the description.

    Args:
        name, level, read_only, exclusive, timeout, resume: the attributes of ``Tool``.

    Raises:
        TypeError: if the name, the function or an argument is invalid.

    Example:
        >>> class EchoParams(BaseModel):
        ...     text: str
        >>> @tool("echo", read_only=True)
        ... async def echo(params: EchoParams, ctx: ToolContext) -> str:
        ...     '''Return the text.'''
        ...     return params.text
        >>> echo.model_name, echo.validate({"text": "hello"})
        ('echo', {'text': 'hello'})
    """
    check_name("tool", name)

    def declare(function: Callable[[Any, ToolContext], Awaitable[Any]]) -> Tool:
        if not is_tool_name(name):
            raise TypeError(f"invalid tool name `{name}`: expected {NAME_RULE}")
        model = params_model(f"tool `{name}`", "function", function)
        from_host = host_parameters(f"tool `{name}`", model)

        def validate(arguments: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return model.model_validate(dict(arguments)).model_dump(mode="json", exclude_unset=True)
            except ValidationError as error:
                found = error.errors(include_url=False, include_context=False, include_input=False)[:10]
                problems = (f"`{'.'.join(map(str, one['loc'])) or 'arguments'}`: {problem_text(one)}" for one in found)
                raise ValueError("; ".join(problems)) from None

        async def run(arguments: dict[str, Any], ctx: ToolContext) -> Any:
            if from_host:  # whichever agent calls it
                origin = Origin(ctx.principal, session=ctx.session.id, channel=ctx.session.channel)
                arguments = {**with_host_values(from_host, arguments, origin)}
            return await function(model.model_validate(arguments), ctx)

        return Tool(
            name=name,
            description=inspect.getdoc(function) or "",
            parameters={**model.model_json_schema(), "type": "object"},  # a recursive model has only a reference
            validate=validate,
            run=run,
            level=level,
            read_only=read_only,
            exclusive=exclusive,
            timeout=timeout,
            resume=resume,
            from_host=from_host,
        )

    return declare


def is_tool_name(name: str) -> bool:
    """Return whether this is a valid tool name: one or two parts joined by a dot, each of lower-case words and ``_``.

    Example:
        >>> is_tool_name("github.stars"), is_tool_name("github__stars"), is_tool_name("Stars")
        (True, False, False)
    """
    return bool(_NAME.match(name)) and len(name.replace(".", "__")) <= _MAX_NAME


class OpenedSource(Protocol):
    """An open source of tools. The host calls one method at a time, in the task in which it opened the source."""

    async def list(self) -> Sequence[Tool]:
        """Return the tools that exist now: a list. Their names are the name of the source, alone or before a dot."""

    async def changed(self) -> None:
        """Return when the tools may have changed since ``list`` was called. The host then lists them again."""


class ToolSource(Protocol):
    """A source of tools that are known only at run time, and may appear, change and disappear.

    ``sideband_tools()`` returns it besides tools. The host opens it, lists its tools and closes it, in a task of its
    own: no agent waits for it. Its tools are removed when it fails or is closed.

    Attributes:
        name: a name of lower-case words joined by ``_``, the namespace of its tools. No other source, plugin or skill
            may have it.
        scope: whether it is opened once for the ``host``, or for each ``session`` of an agent.
    """

    @property
    def name(self) -> str:
        """The name, which is the namespace of its tools."""

    @property
    def scope(self) -> Literal["host", "session"]:
        """Whether it is opened once for the ``host``, or for each ``session`` of an agent."""

    def open(self, ctx: PluginContext) -> AbstractAsyncContextManager[OpenedSource]:
        """Open the source for a host, or for a session.

        Args:
            ctx: the context of the plugin; for a session, an ``AgentContext``.
        """


def is_tool_source(value: object) -> TypeGuard[ToolSource]:
    """Return whether this is a ``ToolSource`` with a valid name."""
    name = None if isinstance(value, type) else getattr(value, "name", None)
    is_named = isinstance(name, str) and "." not in name and is_tool_name(name)
    return is_named and getattr(value, "scope", None) in ("host", "session") and callable(getattr(value, "open", None))


@frozen
class _Patterns:
    """Names, and beginnings of names that were written with a trailing ``*``."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> _Patterns:
        listed = _listed(patterns)
        exact = frozenset(one for one in listed if not one.endswith("*"))
        return cls(exact, tuple(one[:-1] for one in listed if one.endswith("*")))

    def match(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.beginnings)


@frozen
class _Restriction:
    """What one call of ``narrow`` allows. ``None`` allows all."""

    names: _Patterns | None
    sources: _Patterns | None

    def allows(self, tool: Tool) -> bool:
        names, sources = self.names, self.sources
        named = names is None or names.match(tool.name) or names.match(tool.model_name)
        return named and (sources is None or sources.match(tool.source))


@frozen
class ToolView:
    """The tools that a caller may use: immutable, sorted by name. Tools can be removed, but never added.

    A view keeps its restrictions, so that ``resolve`` applies them to the tools that exist later.

    Attributes:
        tools: the tools, sorted by name.

    Example:
        >>> view = ToolView.of([echo])
        >>> view.names, view.narrow(["echo", "other"]).names, view.narrow([]).names
        (('echo',), ('echo',), ())
        >>> view.narrow(["e*"]).resolve(ToolView()).names, view.narrow(sources=["skill *"]).resolve(view).names
        ((), ())
    """

    tools: tuple[Tool, ...] = ()
    _restrictions: tuple[_Restriction, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> ToolView:
        """Return a view of these tools."""
        return cls(tuple(sorted(tools, key=lambda one: one.name)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(one.name for one in self.tools)

    def narrow(self, names: Iterable[str] | None = None, *, sources: Iterable[str] | None = None) -> ToolView:
        """Return a view with only the named tools, and only those of the named sources.

        A name or source that ends in ``*`` matches by prefix. Those that match no tool are ignored: see ``unknown``.

        Args:
            names: the names; a tool matches by ``name`` or by ``model_name``. ``None`` for all.
            sources: the sources, such as ``plugin memory`` or ``skill *``, as in ``Tool.source``. ``None`` for all.

        Raises:
            TypeError: if ``names`` or ``sources`` is a text instead of a list.
        """
        wanted = None if names is None else _Patterns.of(names)
        restriction = _Restriction(wanted, None if sources is None else _Patterns.of(sources))
        return ToolView(tuple(filter(restriction.allows, self.tools)), (*self._restrictions, restriction))

    def resolve(self, current: ToolView) -> ToolView:
        """Return the tools of another view that this view's restrictions allow.

        A tool that this view did not have is included if the restrictions already allowed it.
        """
        if not self._restrictions:
            return current
        allowed = [one for one in current.tools if all(rule.allows(one) for rule in self._restrictions)]
        return ToolView(tuple(allowed), (*current._restrictions, *self._restrictions))

    def unknown(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that match no tool in this view."""
        return tuple(name for name in _listed(names) if not self._has(name))

    def get(self, name: str) -> Tool | None:
        """Return the tool with that ``name`` or ``model_name``, or ``None``."""
        return self._by_name.get(name)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the schemas of the tools for a model request, as one object."""
        return self._schemas

    @cached_property
    def schema_size(self) -> int:
        """The length of all schemas as JSON, in characters."""
        return sum([one.schema_size for one in self.tools])

    @cached_property
    def _schemas(self) -> tuple[ToolSchema, ...]:
        return CarryingTuple([one.schema for one in self.tools])

    @cached_property
    def _by_name(self) -> Mapping[str, Tool]:
        found: dict[str, Tool] = {}
        for one in self.tools:
            found.setdefault(one.name, one)
            found.setdefault(one.model_name, one)
        return found

    def _has(self, name: str) -> bool:
        if name.endswith("*"):
            return any(one.startswith(name[:-1]) for one in self._by_name)
        return name in self._by_name


def _listed(names: Iterable[str]) -> tuple[str, ...]:
    # The characters of a text are names too, and its `*` would match all tools.
    if isinstance(names, str):
        raise TypeError(f"expected a list of names, got a text: write [{names!r}]")
    return tuple(names)
