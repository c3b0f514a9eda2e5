"""The context of one tool call: its rights end with the call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from attrs import define, evolve, field, frozen
from sideband.broker import Progress, Redaction
from sideband.host import HostPluginContext, ToolRegistry
from sideband.ops import Origin
from sideband.tools import Tool

from .._contexts import AgentControls, AgentPluginContext, host_context
from .._errors import CallEnded
from .._run import RunResult
from ._long_results import LongResults
from ._offered_skills import OfferedSkills


@frozen
class ToolContexts:
    """Makes the contexts of an agent's tool calls.

    Args:
        agent: the agent.
        registry: knows which plugin a tool comes from.
        of_skills: the context of the host that tools of skills get, and calls of unknown tools.
        results: the long results of the session.
        skills: the skills that the agent may use.
        redactor: takes secrets out of progress.
    """

    agent: AgentControls = field(repr=False)
    registry: ToolRegistry = field(repr=False)
    of_skills: HostPluginContext = field(repr=False)
    results: LongResults = field(repr=False)
    skills: OfferedSkills = field(repr=False)
    redactor: Redaction = field(repr=False)

    def make(
        self, tool: Tool | None, call: str, step: str, on_progress: Callable[[Progress], None] | None = None
    ) -> ToolCallContext:
        """The context of one call.

        Args:
            tool: the tool; ``None`` if the model wrote an unknown name.
            call: the id that the model gave the call.
            step: its step in the run.
            on_progress: gets progress; must not block.
        """
        base = host_context(self.registry.context(tool)) if tool else None
        name = tool.name if tool else ""
        return ToolCallContext(base or self.of_skills, self.agent, self, name, call, step, on_progress)


@define(eq=False)
class ToolCallContext(AgentPluginContext):
    """``ToolContext``: what one call of a tool gets.

    Attributes:
        tool: the tool; empty if there is none of the name that the model wrote.
        call: the id that the model gave the call.
        step: its step in the run.
    """

    _shared: ToolContexts = field(repr=False)
    tool: str
    call: str
    step: str
    _on_progress: Callable[[Progress], None] | None = field(repr=False)
    _ended: bool = field(default=False, init=False)
    _under_way: set[anyio.CancelScope] = field(factory=set, init=False, repr=False)

    def end(self) -> None:
        """Take its rights away: the call has ended. What it has left under way is cancelled."""
        self._ended = True
        for scope in self._under_way:
            scope.cancel()

    async def dispatch(
        self, op: str, params: Mapping[str, Any], *, capabilities: Iterable[str] | None = None, key: str | None = None
    ) -> Any:
        """Run an op as an effect of the call."""
        async with self._of_the_call():
            return await AgentPluginContext.dispatch(self, op, params, capabilities=capabilities, key=key)

    @asynccontextmanager
    async def _of_the_call(self) -> AsyncIterator[None]:
        """What is done here ends with the call."""
        self._check_alive()
        with anyio.CancelScope() as scope:
            self._under_way.add(scope)
            try:
                yield
            finally:
                self._under_way.discard(scope)
        if scope.cancelled_caught:
            raise CallEnded(self.tool, self.call)

    def _check_alive(self) -> None:
        if self._ended:
            raise CallEnded(self.tool, self.call)

    @property
    def origin(self) -> Origin:
        """Who causes what the tool dispatches."""
        return evolve(super().origin, step=self.step, tool=self.tool or None)

    @property
    def key(self) -> str:
        """The idempotency key of the call."""
        return f"{self.agent.session.id}:{self.run}:{self.step}"

    async def spawn_child(self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5) -> RunResult:
        """Let a child agent do a task for this call, and wait for it."""
        async with self._of_the_call():
            return await self.agent.spawn_child(prompt, tools=tools, share=share, call=self.key)

    def on_progress(self, progress: Progress) -> None:
        """Get progress of what the tool does."""
        if self._on_progress is not None:
            self._on_progress(progress)

    async def progress(
        self, *, current: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever watches how far the call is."""
        if self._ended:
            return
        text = None if message is None else self._shared.redactor.text(message)
        self.on_progress(Progress(self.call, self.plugin, current, total, text))

    async def output(self, handle: str) -> str:
        """The whole text of a result of which the model saw only a part."""
        self._check_alive()
        return await self._shared.results.read(handle)

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """The skills that the agent may use."""
        return await self._shared.skills.all()
