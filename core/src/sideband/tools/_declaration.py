"""Declare a tool by a function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import ValidationError

from ..contexts import ToolContext
from ..loading import Resume
from ..ops import Level, Origin
from ..ops._declaration import check_name, params_model
from ..ops._from_host import host_parameters, with_host_values
from ..validation import problem_text
from ._tool import NAME_RULE, Tool, is_tool_name


def tool(
    name: str,
    *,
    level: Level = Level.MONITORED,
    read_only: bool = False,
    exclusive: bool = False,
    timeout: float | None = None,
    resume: Resume = "never",
    parallel_group: str = "",
    category: str = "",
    explicit: bool = False,
) -> Callable[[Callable[[Any, ToolContext], Awaitable[Any]]], Tool]:
    """Declare a tool. The annotation of the function's first parameter is a pydantic model of the tool's parameters.

    The docstring of the function is the description.

    Args:
        name, level, read_only, exclusive, timeout, resume, parallel_group, category, explicit: the attributes of
            ``Tool``.

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
                session, mode = ctx.session, ctx.approval_mode
                origin = Origin(ctx.principal, session=session.id, channel=session.channel, approval_mode=mode)
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
            parallel_group=parallel_group,
            category=category,
            explicit=explicit,
        )

    return declare
