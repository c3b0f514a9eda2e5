"""Calls of skill tools that ops make: children of their effects, recorded, and never wider than declared.

Such a call has its own attempt, whose key is that of its effect. If the outer call was interrupted and runs again, so
does this one, and the effects of both are answered from the record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from attrs import define, field
from pydantic import BaseModel, ConfigDict

from ..approvals import ApprovalNeeded
from ..broker import ALWAYS, CONTINUES, Attempt, BoundOp, Broker, Call
from ..broker._context import DispatchContext
from ..contexts import HandlerContext, SkillTool, ToolState
from ..errors import SidebandError
from ..loading import LoadedSkills, SkillSpec
from ..ops import EffectUnknown, Grant, Level, LimitExceeded, OpSpec, ToolCallFailed
from ..workers import GrantRequired, ToolNotFound
from ._catalog import SkillCatalog
from ._requests import CallParent, CallRequest
from ._skill_calls import SkillCalls

_OP = "skill.call"
_MAX_DEPTH = 4
_LONGEST_CALL = 86_400.0
_HIDDEN = "disable-model-invocation"


class _Params(BaseModel):
    """The parameters of ``skill.call``, which neither skills nor plugins can dispatch."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tool: str
    arguments: dict[str, Any]


class _Answer(BaseModel):
    """The result of the tool, or the error of its call: both are an outcome that is recorded and not repeated."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    output: Any = None
    error: dict[str, Any] | None = None


@define(eq=False)
class NestedSkillCalls:
    """The calls of skill tools that the ops of a host make. See ``SkillContext``.

    Args:
        broker: records the calls.
        calls: runs the tools.
        catalog: the skills.
        reach: returns the highest level of the effects that calls of a skill may cause.
    """

    _broker: Broker = field(repr=False)
    _calls: SkillCalls = field(repr=False)
    _catalog: SkillCatalog = field(repr=False)
    _reach: Callable[[SkillSpec], Awaitable[Level]] = field(repr=False)
    _listed: tuple[LoadedSkills, tuple[SkillTool, ...]] | None = field(default=None, init=False, repr=False)

    async def tools(self) -> tuple[SkillTool, ...]:
        """See ``SkillContext.tools``."""
        loaded = await self._catalog.all()
        if self._listed is None or self._listed[0] is not loaded:
            found = [one for skill in loaded.skills for one in _tools(skill)]
            self._listed = loaded, tuple(sorted(found, key=lambda one: one.name))
        return self._listed[1]

    async def state(self, tool: str) -> ToolState:
        """See ``SkillContext.tool_state``."""
        skill = await self._skill(tool)
        try:
            missing = await self._calls.missing(skill)
        except SidebandError as error:
            return ToolState("unavailable", error.message)
        if missing:
            return ToolState("needs_grant", GrantRequired(skill.name, missing.texts()).message)
        return ToolState("ready")

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, call: Call, parent: DispatchContext, limit: Grant | None
    ) -> Any:
        """See ``SkillContext.call_tool``."""
        if call.depth >= _MAX_DEPTH:
            raise LimitExceeded("nested_calls", _MAX_DEPTH, op=parent.op)
        level = await self._reach(await self._skill(tool))
        running = _NestedCall(self._broker, self._calls, call, limit)
        outer = _running.set(running)
        try:
            found = await self._broker.dispatch(
                call,
                _OP,
                {"tool": tool, "arguments": dict(arguments)},
                own=_op(level),
                parent=parent,
                note={CONTINUES: ALWAYS},
            )
        finally:
            _running.reset(outer)
        if running.attempt is not None:  # of a call that ended; one that was cancelled may continue
            await self._broker.attempts.forget(running.attempt)
        if found["error"] is not None:
            raise ToolCallFailed(tool, found["error"])
        return found["output"]

    async def _skill(self, tool: str) -> SkillSpec:
        try:
            return (await self._catalog.tool(tool))[0]
        except ToolNotFound as error:
            raise ToolCallFailed(tool, error.as_dict()) from error


@define(eq=False)
class _NestedCall:
    """A call that was passed to the broker, with what its op needs to run it.

    Attributes:
        attempt: its attempt, if the outer call has one.
    """

    _broker: Broker
    _calls: SkillCalls
    _outer: Call
    _limit: Grant | None
    attempt: Attempt | None = field(default=None, init=False)

    async def run(self, params: _Params, own: HandlerContext) -> _Answer:
        """Call the tool, and return its result or the error of the call."""
        outer = self._outer
        attempt = self.attempt = await self._attempt(own.effect)
        assert isinstance(own, DispatchContext)  # noqa: S101  the broker's own, which is a lease too
        parent = CallParent(
            effect=own.effect,
            deadline=own.deadline,
            depth=outer.depth,
            lease=own,
            limit=self._limit,
            holder="" if self._limit is None else outer.holder,
        )
        request = CallRequest(
            params.tool,
            params.arguments,
            principal=outer.origin.principal,
            on_effect=outer.on_effect,
            on_answer=outer.on_answer,
            origin=outer.origin,
            attempt=attempt,
            hooks=outer.hooks,
            progress=outer.progress,
            parent=parent,
        )
        try:
            answer = _Answer(output=(await self._calls.run(request)).output)
        except SidebandError as error:
            answer = _Answer(error=error.as_dict())
        if attempt is not None:
            self._pass_on(attempt)
        return answer

    async def _attempt(self, effect: str) -> Attempt | None:
        """Return the attempt of the call, with the record of earlier ones if the outer call runs again."""
        outer = self._outer.attempt
        if outer is None:
            return None
        key = outer.key_of(effect)
        seed = hashlib.sha256(f"{outer.seed} {key}".encode()).hexdigest()[:32]
        if outer.is_repeated:
            principal = self._outer.origin.principal
            attempts = self._broker.attempts
            attempt = await attempts.again(
                key, principal=principal, started=outer.started, seed=seed, stops=outer.stops
            )
        else:
            attempt = Attempt(key=key, started=outer.started, seed=seed)
        attempt.parks = outer.parks
        return attempt

    def _pass_on(self, attempt: Attempt) -> None:
        """Let the outer call wait for the approval that this one waits for, or stop with it.

        Raises:
            ApprovalNeeded: if the call waits for an approval. It is not an outcome: the call runs again.
            EffectUnknown: if the outcome of one of its effects is unknown.
        """
        outer = self._outer.attempt
        assert outer is not None  # noqa: S101  see above
        if attempt.waits is not None:
            outer.wait_for(attempt.waits)
            raise ApprovalNeeded(attempt.waits.request)
        if isinstance(attempt.unknown, EffectUnknown) and outer.stops:
            outer.unknown = outer.unknown or attempt.unknown
            raise attempt.unknown


_running: ContextVar[_NestedCall] = ContextVar("sideband_nested_call")


async def _run(params: _Params, own: HandlerContext) -> _Answer:
    """Run the current call. The handler of the op."""
    return await _running.get().run(params, own)


@cache
def _op(level: Level) -> BoundOp:
    """Return the op that calls tools of skills whose effects have at most this level."""
    spec = OpSpec(
        name=_OP,
        handler=_run,
        params=_Params,
        result=_Answer,
        level=level,
        timeout=_LONGEST_CALL,
        indirect=True,
        record=("tool", "arguments"),
        foreign_names=True,
        egress=False,
    )
    return BoundOp.own(spec, plugin="host")


def _tools(skill: SkillSpec) -> list[SkillTool]:
    services: dict[str, list[str]] = {}
    for service, tool in sorted(skill.provides.items()):
        services.setdefault(tool, []).append(service)
    return [
        SkillTool(
            name=one.full_name,
            skill=skill.name,
            origin=skill.origin,
            description=one.description,
            parameters=one.parameters,
            services=tuple(services.get(one.name, ())),
            for_models=skill.metadata.get(_HIDDEN) != "true",
            check=one.validate,
        )
        for one in skill.tools
    ]
