"""The context of op families that call tools of skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import field, frozen

from ._model import ModelContext
from ._op import OpContext

ToolRights = Literal["caller", "skill"]
"""Whose rights a tool gets that an op calls: those of the skill narrowed to those of the caller, or all of them."""


@frozen
class SkillTool:
    """A tool of a loaded skill.

    Attributes:
        name: ``skill.tool``.
        skill: the name of the skill.
        origin: the origin of the skill, as in ``SkillSpec``.
        description: what the tool does.
        parameters: the JSON Schema of its arguments.
        services: the services that the skill provides with it.
        for_models: whether models may use the skill.
        check: validates arguments, as ``ToolSpec.validate`` does.
    """

    name: str
    skill: str
    origin: str
    description: str
    parameters: Mapping[str, Any] = field(repr=False)
    services: tuple[str, ...] = ()
    for_models: bool = True
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=dict, repr=False, eq=False)


@frozen
class ToolState:
    """Whether a tool could be called now.

    Attributes:
        state: ``ready``, ``needs_grant`` if its skill lacks capabilities that it requests, or ``unavailable``.
        reason: why it is not ready.
    """

    state: Literal["ready", "needs_grant", "unavailable"]
    reason: str = ""


class SkillContext(OpContext, Protocol):
    """The context of handlers that call tools of skills: an op context with access to them.

    The host passes this context to every handler. Use it as an annotation only if the handler calls tools.
    """

    @property
    def key(self) -> str | None:
        """The idempotency key of the effect, from which those of child effects can be made; ``None`` without one.

        If the call was interrupted and runs again, the key is the same.
        """

    @property
    def holder(self) -> str:
        """The id of the call whose rights are used: a call that an op made with rights of its caller has that of it."""

    async def tools(self) -> Sequence[SkillTool]:
        """Return the tools of all loaded skills, sorted by name."""

    async def tool_state(self, tool: str) -> ToolState:
        """Return whether a tool could be called now, with the rights of its skill. No grant is requested.

        Raises:
            ToolCallFailed: if the tool does not exist.
        """

    async def call_tool(self, tool: str, arguments: Mapping[str, Any], *, rights: ToolRights) -> Any:
        """Call a tool of a skill, as a child effect that is recorded, and return its result.

        The call has the deadline of the op, the principal, the guards and the agent of the caller. Calls of tools
        within calls of tools are limited to a depth of 4.

        Args:
            tool: ``skill.tool``.
            arguments: the arguments of the tool.
            rights: ``caller`` for the rights of the skill, as granted by the user, narrowed to those of this context;
                ``skill`` for all rights of the skill. The op must then check that the caller may cause that.

        Raises:
            ToolCallFailed: if the tool failed or could not be called. Its ``code`` is that of the error of the call.
            OpError: if the call was denied, or a limit was reached.
        """


class HandlerContext(ModelContext, SkillContext, Protocol):
    """What the host passes to every handler. Annotate handlers with the narrowest context that they need."""
