"""The contexts of an agent: what hooks and tools get, so that what they do is this agent's, and recorded as such."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from attrs import define, evolve, field
from sideband.broker import Progress
from sideband.hooks import HookRegistry
from sideband.host import HostPluginContext
from sideband.messages import Usage, parse_message
from sideband.ops import Credential, Origin

from ._errors import CallEnded

if TYPE_CHECKING:
    from ._agent import Agent
    from ._run import RunResult
    from .sessions import Session

__all__ = ["AgentPluginContext", "ToolCallContext"]


@define(eq=False)
class AgentPluginContext:
    """``AgentContext``: the context of one plugin, for one agent.

    Attributes:
        base: what the plugin has of the host.
        agent: the agent.
    """

    base: HostPluginContext = field(repr=False)
    agent: Agent = field(repr=False)

    def _check_alive(self) -> None:
        """Raise if it may not be used any more."""

    @property
    def plugin(self) -> str:
        """The entry-point name."""
        return self.base.plugin

    @property
    def config(self) -> Any:
        """The plugin's validated configuration."""
        return self.base.config

    @property
    def state(self) -> Any:
        """What the plugin's ``lifespan`` yielded."""
        return self.base.state

    @property
    def principal(self) -> str:
        """On whose behalf."""
        return self.base.principal

    @property
    def home(self) -> Path:
        """The host's folder for state."""
        return self.base.home

    @property
    def session(self) -> Session:
        """The session."""
        return self.agent.session

    @property
    def run(self) -> str:
        """The id of the run; empty between runs."""
        return self.agent.run_id

    @property
    def model(self) -> str:
        """``provider:model``."""
        return self.agent.model

    @property
    def is_idle(self) -> bool:
        """Whether no run is under way."""
        return self.agent.is_idle

    @property
    def has_pending_messages(self) -> bool:
        """Whether something is queued."""
        return self.agent.has_pending_messages

    @property
    def usage(self) -> Usage:
        """What the session has used."""
        return self.agent.usage

    @property
    def system_prompt(self) -> str:
        """The system prompt of this run."""
        return self.agent.system_prompt

    @property
    def origin(self) -> Origin:
        """Who causes what this context dispatches."""
        return Origin(session=self.agent.session.id, run=self.agent.run_id or None, parent=self.agent.parent_call)

    @property
    def hooks(self) -> HookRegistry:
        """The agent's guards and hooks."""
        return self.agent.hooks

    async def dispatch(
        self, op: str, params: Mapping[str, Any], *, capabilities: Iterable[str] | None = None, key: str | None = None
    ) -> Any:
        """Run an op as an effect of this plugin. What a model call uses is charged to the session."""
        self._check_alive()
        result = await self.base.dispatch_for(
            self.origin, op, params, capabilities=capabilities, key=key, hooks=self.hooks
        )
        if op == "llm.generate":
            await self.agent.charge_side_call(getattr(parse_message(result), "usage", Usage()), self.plugin)
        return result

    async def credential(self, handle: str, audience: str) -> Credential:
        """Resolve a handle for one audience."""
        self._check_alive()
        return await self.base.credential(handle, audience)

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Make a value known to the redactor."""
        self.base.protect(value, name, origins=origins)

    def abort(self, reason: str = "") -> None:
        """End the run at its next wait."""
        self._check_alive()
        self.agent.abort(reason or f"the plugin `{self.plugin}` ended it")

    def shutdown(self) -> None:
        """Ask whoever runs the agent to end it."""
        self._check_alive()
        self.agent.shutdown()

    def steer(self, text: str) -> None:
        """Queue a message for the model."""
        self._check_alive()
        self.agent.steer(text, source=self.plugin)

    def follow_up(self, text: str) -> None:
        """Queue a message that begins another run."""
        self._check_alive()
        self.agent.follow_up(text, source="plugin")

    def compact(self, instructions: str = "") -> None:
        """Ask for a compaction at the next chance."""
        self._check_alive()
        self.agent.ask_for_compaction(instructions)

    async def reload(self) -> None:
        """Read skills, prompts and tools anew."""
        self._check_alive()
        await self.agent.reload()

    async def wait_for_idle(self) -> None:
        """Wait until no run is under way."""
        await self.agent.wait_for_idle()

    async def new_session(self) -> str:
        """Leave the session for a new one."""
        self._check_alive()
        return await self.agent.new_session()

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Leave the session for a copy of its path up to an entry."""
        self._check_alive()
        return await self.agent.fork(entry, position=position)

    async def switch_session(self, session: str) -> None:
        """Leave the session for another one."""
        self._check_alive()
        await self.agent.switch_session(session)

    async def spawn_child(self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5) -> RunResult:
        """Let a child agent do a task, and wait for it."""
        self._check_alive()
        return await self.agent.spawn_child(prompt, tools=tools, share=share)


@define(eq=False)
class ToolCallContext(AgentPluginContext):
    """``ToolContext``: what one call of a tool gets.

    Attributes:
        tool: the tool; empty if there is none of the name that the model wrote.
        call: the id that the model gave the call.
        step: its step in the run.
        on_progress: gets progress; must not block.
    """

    tool: str
    call: str
    step: str
    on_progress: Callable[[Progress], None] = field(repr=False)
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
        return f"{self.agent.session.id}:{self.agent.run_id}:{self.step}"

    async def spawn_child(self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5) -> RunResult:
        """Let a child agent do a task for this call, and wait for it."""
        async with self._of_the_call():
            return await self.agent.spawn_child(prompt, tools=tools, share=share, call=self.key)

    async def progress(
        self, *, current: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever watches how far the call is."""
        if self._ended:
            return
        text = None if message is None else self.agent.host.redactor.text(message)
        self.on_progress(Progress(self.call, self.plugin, current, total, text))

    async def output(self, handle: str) -> str:
        """The whole text of a result of which the model saw only a part."""
        self._check_alive()
        return await self.agent.outputs.read(handle)

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """The skills that the agent may use."""
        return await self.agent.skills()
