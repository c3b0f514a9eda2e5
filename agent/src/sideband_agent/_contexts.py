"""The context of a plugin in an agent: what its hooks do is this agent's, and recorded as such."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from attrs import define, field
from sideband.hooks import HookRegistry
from sideband.host import HostPluginContext
from sideband.messages import Usage, parse_message
from sideband.ops import Credential, Origin
from sideband.plugins import PluginContext

from ._inherited import Inherited
from ._run import Run, RunResult
from .sessions import Session


class AgentControls(Protocol):
    """What contexts use of the agent that they belong to. ``Agent`` has all of it, and says more."""

    @property
    def session(self) -> Session:
        """The session."""

    @property
    def hooks(self) -> HookRegistry:
        """Its guards and hooks."""

    @property
    def run(self) -> Run | None:
        """The run that is under way."""

    @property
    def model(self) -> str:
        """``provider:model``."""

    @property
    def usage(self) -> Usage:
        """What the session has used."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""

    @property
    def has_pending_messages(self) -> bool:
        """Whether something is queued."""

    @property
    def inherited(self) -> Inherited | None:
        """What it has of a parent, if it is a child."""

    def steer(self, text: str, *, source: str = "user") -> None:
        """Queue a message for the model."""

    def follow_up(self, text: str, *, source: str = "user") -> None:
        """Queue an input that begins a run."""

    def abort(self, reason: str = "") -> None:
        """End the run."""

    def shutdown(self) -> None:
        """Ask for the end of the agent."""

    def ask_for_compaction(self, instructions: str = "") -> None:
        """Ask for a compaction."""

    async def wait_for_idle(self) -> None:
        """Wait until nothing is under way."""

    async def reload(self) -> None:
        """Read skills, prompts and tools anew."""

    async def new_session(self) -> str:
        """Go over to a new session."""

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Go over to a copy of the session."""

    async def switch_session(self, session: str) -> None:
        """Go over to another session."""

    async def spawn_child(
        self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5, call: str | None = None
    ) -> RunResult:
        """Let a child do a task."""

    async def charge_side_call(self, usage: Usage, plugin: str) -> None:
        """Note what a side call used."""


def host_context(theirs: PluginContext | None) -> HostPluginContext | None:
    """What a plugin has of the host; ``None`` of what was registered with another context, or without one."""
    return theirs if isinstance(theirs, HostPluginContext) else None


@define(eq=False)
class AgentPluginContext:
    """``AgentContext``: the context of one plugin, for one agent.

    Attributes:
        base: what the plugin has of the host.
        agent: the agent.
    """

    base: HostPluginContext = field(repr=False)
    agent: AgentControls = field(repr=False)

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
        return self.agent.run.id if self.agent.run else ""

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
        return self.agent.run.system_prompt if self.agent.run else ""

    @property
    def origin(self) -> Origin:
        """Who causes what this context dispatches."""
        parent = self.agent.inherited.call if self.agent.inherited else None
        return Origin(session=self.agent.session.id, run=self.run or None, parent=parent)

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
