"""The context of a tool call, valid until the call ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from attrs import define, field, frozen
from sideband.asking import UserAnswer, UserQuestion
from sideband.broker import Attempt, Broker, CallProgress
from sideband.host import HostPluginContext
from sideband.ops import ContextRevoked, Origin
from sideband.tools import Tool

from .._broker_calls import new_call
from .._child_sessions import ChildSession, ChildSessions
from .._contexts import AgentControls, AgentPluginContext, host_context, origin_of
from .._errors import AskerMissing, CallEnded
from .._run import RunResult
from .._session_tools import SessionTools
from ._child_effects import recorded_child
from ._long_results import LongResults
from ._offered_skills import OfferedSkills


@frozen
class ToolContexts:
    """A factory for the contexts of an agent's tool calls.

    Args:
        agent: the agent.
        broker: records the children of calls that may run again.
        children: keeps the sessions of these children until the call has ended.
        tools: the tools of the session, which know their plugins.
        of_skills: the host's context for tools of skills and calls of unknown tools.
        results: the long results of the session.
        skills: the skills that the agent may use.
    """

    agent: AgentControls = field(repr=False)
    broker: Broker = field(repr=False)
    children: ChildSessions = field(repr=False)
    tools: SessionTools = field(repr=False)
    of_skills: HostPluginContext = field(repr=False)
    results: LongResults = field(repr=False)
    skills: OfferedSkills = field(repr=False)

    def make(self, tool: Tool | None, call: str, step: str, progress: CallProgress | None = None) -> ToolCallContext:
        """Make the context of one call.

        Args:
            tool: the tool, or ``None`` if the model used an unknown name.
            call: the id that the model gave the call.
            step: its step in the run.
            progress: takes the progress of the call, if something observes it.
        """
        base = host_context(self.tools.plugin(tool)) if tool else None
        name = tool.name if tool else ""
        # Kept, so that what comes after the call is recorded as an effect of its run and not of a later one.
        origin = origin_of(self.agent, step=step, tool=name or None)
        context = ToolCallContext(base or self.of_skills, self.agent, self, name, call, step, origin)
        context.call_progress = progress
        return context


@define(eq=False)
class ToolCallContext(AgentPluginContext):
    """``ToolContext``: the context of one tool call.

    Attributes:
        tool: the name of the tool; empty if the model used an unknown name.
        call: the id that the model gave the call.
        step: its step in the run.
        origin: the origin of the effects that the tool dispatches.
    """

    _shared: ToolContexts = field(repr=False)
    tool: str
    call: str
    step: str
    origin: Origin
    _ended: bool = field(default=False, init=False)
    _has_children: bool = field(default=False, init=False)
    _running: set[anyio.CancelScope] = field(factory=set, init=False, repr=False)

    def end(self) -> None:
        """Invalidate the context when the call has ended. Operations still running are cancelled."""
        self._ended = True
        if self.lease is not None:
            self.lease.end()
        for scope in self._running:
            scope.cancel()

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        uses: Iterable[str] | None = None,
    ) -> Any:
        """Dispatch an op as an effect of the call. The broker refuses and records what comes after its end."""
        try:
            async with self._within_call():
                return await AgentPluginContext.dispatch(
                    self, op, params, capabilities=capabilities, key=key, uses=uses
                )
        except ContextRevoked:
            self._check_alive()
            raise

    @asynccontextmanager
    async def _within_call(self) -> AsyncIterator[None]:
        """Cancel the block when the call ends."""
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                yield
            finally:
                self._running.discard(scope)
        if scope.cancelled_caught:
            raise CallEnded(self.tool, self.call)

    def _check_alive(self) -> None:
        if self._ended or (self.lease is not None and self.lease.is_over()):
            raise CallEnded(self.tool, self.call)

    @property
    def key(self) -> str:
        """The idempotency key of the call."""
        return f"{self.origin.session}:{self.origin.run or ''}:{self.step}"

    async def spawn_child(self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5) -> RunResult:
        """Run a task in a child agent for this call and wait for it."""
        self._check_alive()
        async with self._within_call():
            run = partial(self.agent.run_child, task=prompt, tools=tools, share=share)
            attempt = self.attempt
            if attempt is None:
                return await run(ChildSession.in_memory(self.key))
            call = new_call(self.origin, self.hooks)
            call.attempt = attempt
            params = {"prompt": prompt, "tools": tools, "share": share}

            async def spawn(effect: str) -> RunResult:
                return await run(await self._own_session(attempt, effect))

            return await recorded_child(self._shared.broker, call, params, spawn)

    async def _own_session(self, attempt: Attempt, effect: str) -> ChildSession:
        """Return where the child of an effect keeps its session."""
        self._has_children = True
        spawner = self.principal, self.plugin, self.tool
        return await self._shared.children.find(self.run, self.step, attempt=attempt, effect=effect, spawner=spawner)

    async def forget_children(self, *, earlier: bool) -> None:
        """Delete the sessions of the call's children, whose results are recorded.

        Args:
            earlier: whether an earlier attempt may have left some.
        """
        if self._has_children or earlier:
            await self._shared.children.forget(self.run, self.step)

    async def progress(
        self,
        *,
        current: float | None = None,
        total: float | None = None,
        message: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Report the progress of the call."""
        if self.call_progress is None:
            return
        self.call_progress.report(self.tool, current=current, total=total, message=message, unit=unit)
        await anyio.lowlevel.checkpoint()  # so that it is emitted before the next step of the tool

    async def output(self, handle: str) -> str:
        """Return the full text of a result that was shortened for the model."""
        self._check_alive()
        return await self._shared.results.read(handle)

    async def ask(self, questions: Sequence[UserQuestion]) -> tuple[UserAnswer, ...]:
        """Ask the user, and return an answer to each question."""
        self._check_alive()
        asker = self.agent.asker
        if asker is None:
            raise AskerMissing
        async with self._within_call():
            with self._shared.broker.approvals.waits.of(self.origin):
                answers = tuple(await asker(tuple(questions), self.origin))
        if len(answers) != len(questions):
            raise TypeError(f"`asker` returned {len(answers)} answers to {len(questions)} questions")
        return answers

    async def skills(self, *, again: bool = False) -> tuple[Mapping[str, Any], ...]:
        """Return the skills that the agent may use; with ``again``, those that a new search finds."""
        return await self._shared.skills.all(again=again)

    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Return the tools that the agent may call, and which of them the last model request sent."""
        tools = self._shared.tools
        return tuple(
            {
                "name": one.model_name,
                "description": one.description,
                "source": one.source,
                "category": one.category,
                "sent": tools.sent.get(one.name) is not None,
            }
            for one in tools.allowed.tools
        )
