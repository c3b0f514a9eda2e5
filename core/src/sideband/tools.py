"""What a model may call: tools, as plugins declare them, and views that only narrow.

A tool is a plugin of the group ``sideband.v1.tool``: ``sideband_tools()`` returns a list of them, or the entry point
names one. Tools of skills are made by the host, and look the same.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen
from pydantic import ValidationError

from .contexts import ToolContext
from .ops import Level
from .ops._spec import params_model
from .providers import ToolSchema

__all__ = [
    "RESULT_LIMITS",
    "SCHEMA_LIMIT",
    "ResultLimits",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolView",
    "is_tool_name",
    "tool",
]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)?\Z")
_LONGEST_NAME = 64

SCHEMA_LIMIT = 65_536
"""The most characters that the description and the parameters of a tool may have, as JSON: every request has them."""


@frozen
class ResultLimits:
    """How much a tool may return. Of a longer text a model sees a part anyway; see ``output_tokens``.

    Attributes:
        characters: of the text that is kept under a handle. The middle of a longer one is left out.
        images: how many. The others are left out.
        image: bytes of one image. A larger one, one that is not what it says, and one of another kind than png, jpeg,
            gif and webp is left out: models refuse it, again with each request.
        metadata: characters of what it says besides, as JSON. If it is more, nothing of it is kept.
    """

    characters: int = 16 << 20
    images: int = 20
    image: int = 5 << 20
    metadata: int = 16_384


RESULT_LIMITS = ResultLimits()
"""The limits of every result."""


@frozen
class ToolOutput:
    """A result with more to say than its content.

    Args:
        content: text, JSON data, or a list of message parts (``TextPart``, ``ImagePart``).
        is_error: whether the tool failed; the content says why.
        terminate: whether the run may end with this result instead of another model call.
        metadata: data that is stored with the result, and not sent to the model. What the host says itself, ``effect``,
            ``ms``, ``output``, ``code``, ``unknown`` and such, is not taken from here.
    """

    content: Any
    is_error: bool = False
    terminate: bool = False
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen
class Tool:
    """One tool.

    Attributes:
        name: ``memory``, or ``github.stars``: of a plugin, its entry-point name, alone or before a dot.
        description: for the model: what it does, and when to use it.
        parameters: a JSON Schema object.
        validate: checks and coerces arguments; raises ``ValueError`` whose message names each bad argument.
        run: does it, with validated arguments. Returns text, JSON data, or a ``ToolOutput``; what it raises is told to
            the model.
        level: the highest level that its effects reach.
        read_only: whether it changes nothing, so that repeating it with the same result is no progress.
        exclusive: whether no other call may run at the same time.
        timeout: seconds; ``None`` for the host's default.
        source: where it comes from, for people: ``skill github``, ``plugin memory``.
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
    source: str = ""

    @property
    def model_name(self) -> str:
        """Its name as models see it: ``github__stars``."""
        return self.name.replace(".", "__")

    @property
    def schema(self) -> ToolSchema:
        """It, as a model is told."""
        return ToolSchema(name=self.model_name, description=self.description, parameters=dict(self.parameters))


def tool(
    name: str,
    *,
    level: Level = Level.MONITORED,
    read_only: bool = False,
    exclusive: bool = False,
    timeout: float | None = None,
) -> Callable[[Callable[[Any, ToolContext], Awaitable[Any]]], Tool]:
    """Declare a tool. Its parameters are the pydantic model that the function's first parameter is annotated with.

    Args:
        name, level, read_only, exclusive, timeout: the attributes of ``Tool``. The description is the docstring.

    Raises:
        TypeError: the name or the function can't be used; the message says why.

    Example:
        >>> class EchoParams(BaseModel):
        ...     text: str
        >>> @tool("echo", read_only=True)
        ... async def echo(params: EchoParams, ctx: ToolContext) -> str:
        ...     '''Say it again.'''
        ...     return params.text
        >>> echo.model_name, echo.validate({"text": "hello"})
        ('echo', {'text': 'hello'})
    """

    def declare(function: Callable[[Any, ToolContext], Awaitable[Any]]) -> Tool:
        if not is_tool_name(name):
            problem = (
                "a name is lower-case words joined with `_`, alone or two of them joined by a dot, in 64 characters"
            )
            raise TypeError(f"tool `{name}`: {problem}")
        model = params_model(f"tool `{name}`", "function", function)

        def validate(arguments: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return model.model_validate(dict(arguments)).model_dump(mode="json", exclude_unset=True)
            except ValidationError as error:
                found = error.errors(include_url=False, include_context=False, include_input=False)[:10]
                told = (f"`{'.'.join(map(str, one['loc'])) or 'arguments'}`: {one['msg']}" for one in found)
                raise ValueError("; ".join(told)) from None

        async def run(arguments: dict[str, Any], ctx: ToolContext) -> Any:
            return await function(model.model_validate(arguments), ctx)

        return Tool(
            name=name,
            description=inspect.getdoc(function) or "",
            parameters=model.model_json_schema(),
            validate=validate,
            run=run,
            level=level,
            read_only=read_only,
            exclusive=exclusive,
            timeout=timeout,
        )

    return declare


def is_tool_name(name: str) -> bool:
    """Whether a tool can have this name: one or two parts of lower-case words joined with ``_``, joined by a dot.

    Example:
        >>> is_tool_name("github.stars"), is_tool_name("github__stars"), is_tool_name("Stars")
        (True, False, False)
    """
    return bool(_NAME.match(name)) and len(name.replace(".", "__")) <= _LONGEST_NAME


@frozen
class ToolView:
    """The tools that somebody may call: immutable, in the order of their names, and never wider than it was made.

    Example:
        >>> view = ToolView.of([echo])
        >>> view.names, view.narrow(["echo", "other"]).names, view.narrow([]).names
        (('echo',), ('echo',), ())
    """

    tools: tuple[Tool, ...] = ()

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> ToolView:
        """A view of these tools."""
        return cls(tuple(sorted(tools, key=lambda one: one.name)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(one.name for one in self.tools)

    def narrow(self, names: Iterable[str]) -> ToolView:
        """Only those of the tools that are named, by either of their names.

        A name that ends in ``*`` stands for all that begin like it. What is not in the view stays out of it: see
        ``unknown``.
        """
        wanted = tuple(names)
        return ToolView(tuple(one for one in self.tools if any(_matches(one, name) for name in wanted)))

    def unknown(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that name nothing here."""
        return tuple(name for name in names if not any(_matches(one, name) for one in self.tools))

    def get(self, name: str) -> Tool | None:
        """The tool of that name, as people or as models write it, or ``None``."""
        return next((one for one in self.tools if name in (one.name, one.model_name)), None)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools, as a model is told about them."""
        return tuple(one.schema for one in self.tools)


def _matches(one: Tool, name: str) -> bool:
    if name.endswith("*"):
        return one.name.startswith(name[:-1]) or one.model_name.startswith(name[:-1])
    return name in (one.name, one.model_name)
