"""The context of a plugin in an agent. Effects of its hooks are recorded as the agent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from attrs import define, field
from sideband.asking import Asker
from sideband.broker import Attempt, CallProgress
from sideband.contexts import ApprovalMode, SkillUses, TimedLease
from sideband.hooks import HookRegistry
from sideband.host import HostPluginContext
from sideband.messages import JsonPieces, Usage, parse_message
from sideband.ops import ContextRevoked, Credential, OpError, Origin
from sideband.plugins import PluginContext
from sideband.store import Store

from ._child_sessions import ChildSession
from ._inherited import Inherited
from ._run import Run, RunResult
from .sessions import Session


class AgentControls(Protocol):
    """The part of ``Agent`` that contexts use. See there for details."""

    @property
    def session(self) -> Session:
        """The open session."""

    @property
    def hooks(self) -> HookRegistry:
        """The agent's guards and hooks."""

    @property
    def run(self) -> Run | None:
        """The run in progress, or ``None``."""

    @property
    def model(self) -> str:
        """The current model, as ``provider:model``."""

    @property
    def folder(self) -> Path:
        """The working directory."""

    @property
    def approval_mode(self) -> ApprovalMode | None:
        """When a person is asked about changes."""

    @property
    def usage(self) -> Usage:
        """The usage of the session."""

    @property
    def asker(self) -> Asker | None:
        """Asks the user; ``None`` if no user can be asked."""

    @property
    def is_idle(self) -> bool:
        """Whether neither a run nor another operation is in progress."""

    @property
    def has_pending_messages(self) -> bool:
        """Whether a message or an input is queued."""

    @property
    def inherited(self) -> Inherited | None:
        """What a child inherits from its parent; ``None`` if it is not a child."""

    def steer(self, text: str, *, source: str = "user") -> None:
        """Queue a message for the model."""

    def follow_up(self, text: str, *, source: str = "user") -> None:
        """Queue an input that begins its own run."""

    def abort(self, reason: str = "") -> None:
        """Cancel the run."""

    def shutdown(self) -> None:
        """Request the end of the agent."""

    def ask_for_compaction(self, instructions: str = "") -> None:
        """Request a compaction."""

    async def wait_for_idle(self) -> None:
        """Wait until the agent is idle."""

    async def reload(self) -> None:
        """Reload skills, prompts and tools."""

    async def new_session(self) -> str:
        """Switch to a new session and return its id."""

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Switch to a copy of the session and return its id."""

    async def switch_session(self, session: str) -> None:
        """Switch to another session."""

    async def spawn_child(
        self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5, call: str | None = None
    ) -> RunResult:
        """Run a task in a child agent."""

    async def run_child(self, own: ChildSession, task: str, *, tools: Sequence[str] | None, share: float) -> RunResult:
        """Run a task in a child agent with this session, or continue with it."""

    async def charge_side_call(self, usage: Usage, plugin: str, source: str = "") -> None:
        """Charge the usage of a plugin's own model call."""


def host_context(context: PluginContext | None) -> HostPluginContext | None:
    """Return the host's context of a plugin, or ``None`` if it was registered with another context or without one."""
    return context if isinstance(context, HostPluginContext) else None


def origin_of(agent: AgentControls, *, step: str | None = None, tool: str | None = None) -> Origin:
    """Return the origin of the effects of an agent's plugins or of one of its tool calls."""
    parent = agent.inherited.own.call if agent.inherited else None
    session, run = agent.session, agent.run
    return Origin(
        session=session.id,
        run=run.id if run else None,
        step=step,
        tool=tool,
        parent=parent,
        channel=session.channel,
        approval_mode=agent.approval_mode,
    )


@define(eq=False)
class AgentPluginContext:
    """``AgentContext``: the context of one plugin, for one agent.

    Attributes:
        base: the plugin's context in the host.
        agent: the agent.
        attempt: the attempt to run a tool call, from which effects get their keys; ``None`` for effects without keys.
        lease: the time for which it may be used; ``None`` for that of the agent.
        call_progress: takes the progress of the effects that it dispatches, if something observes it.
    """

    base: HostPluginContext = field(repr=False)
    agent: AgentControls = field(repr=False)
    attempt: Attempt | None = field(default=None, init=False, repr=False)
    lease: TimedLease | None = field(default=None, init=False, repr=False)
    call_progress: CallProgress | None = field(default=None, init=False, repr=False)

    def leased(self, lease: TimedLease) -> AgentPluginContext:
        """Return a context like this one with a lease, for one dispatch of a hook."""
        own = AgentPluginContext(self.base, self.agent)
        own.lease = lease
        run = self.agent.run
        if run is not None and not run.is_over():  # else it is called because the run was aborted
            lease.outer = run
        return own

    def _check_alive(self) -> None:
        """Raise an error if the context must no longer be used."""
        if self.lease is not None and self.lease.is_over():
            raise ContextRevoked(self.plugin)

    @property
    def plugin(self) -> str:
        """The plugin's entry-point name."""
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
        """The principal on whose behalf the agent acts."""
        return self.base.principal

    @property
    def home(self) -> Path:
        """The host's state folder."""
        return self.base.home

    @property
    def store(self) -> Store:
        """The plugin's own part of the host's store."""
        return self.base.store

    @property
    def session(self) -> Session:
        """The open session."""
        return self.agent.session

    @property
    def run(self) -> str:
        """The id of the run; empty between runs."""
        run = self.agent.run
        return run.id if run else ""

    @property
    def model(self) -> str:
        """The current model, as ``provider:model``."""
        return self.agent.model

    @property
    def is_idle(self) -> bool:
        """Whether neither a run nor another operation is in progress."""
        return self.agent.is_idle

    @property
    def has_pending_messages(self) -> bool:
        """Whether a message or an input is queued."""
        return self.agent.has_pending_messages

    @property
    def usage(self) -> Usage:
        """The usage of the session."""
        return self.agent.usage

    @property
    def system_prompt(self) -> str:
        """The system prompt of the run; empty between runs."""
        return self.agent.run.system_prompt if self.agent.run else ""

    @property
    def folder(self) -> Path:
        """The working directory of the agent."""
        return self.agent.folder

    @property
    def approval_mode(self) -> ApprovalMode | None:
        """When a person is asked about changes; ``None`` without a guard that has modes."""
        return self.agent.approval_mode

    @property
    def origin(self) -> Origin:
        """The origin of the effects that this context dispatches."""
        return origin_of(self.agent)

    @property
    def hooks(self) -> HookRegistry:
        """The agent's guards and hooks."""
        return self.agent.hooks

    def now(self) -> datetime:
        """Return the time."""
        return self.base.now()

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        uses: Iterable[str] | None = None,
    ) -> Any:
        """Dispatch an op as an effect of this plugin. The usage of a model call is charged to the session."""
        return await self.base.dispatch_for(
            self.origin,
            op,
            params,
            capabilities=capabilities,
            key=key,
            uses=uses,
            hooks=self.hooks,
            progress=self.call_progress,
            on_answer=self.on_answer,
            attempt=self.attempt,
            lease=self.lease,
        )

    async def is_granted(self, uses: SkillUses) -> bool:
        """Return whether these capabilities are given to this version of a skill now."""
        return await self.base.is_granted_for(self.origin, uses)

    async def on_answer(self, effect: str, op: str, answer: Any) -> None:
        """Charge the usage of a model call, once for each effect. Called before each answer of an op."""
        if op == "llm.embed" and not isinstance(answer, OpError):
            await self.agent.charge_side_call(Usage.model_validate(answer["usage"]), self.plugin, effect)
        if op == "llm.generate":
            failed = isinstance(answer, OpError)
            usage = getattr(answer if failed else parse_message(answer), "usage", None if failed else Usage())
            if usage is not None:
                await self.agent.charge_side_call(usage, self.plugin, effect)

    async def credential(self, handle: str, audience: str) -> Credential:
        """Resolve a secret's handle for one audience."""
        self._check_alive()
        return await self.base.credential(handle, audience)

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Register a value with the redactor."""
        self.base.protect(value, name, origins=origins)

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]) -> None:
        """Check that data contains no secret that must not be sent there."""
        self.base.check_egress(audience, parts)

    def abort(self, reason: str = "") -> None:
        """Cancel the run."""
        self._check_alive()
        self.agent.abort(reason or f"aborted by plugin `{self.plugin}`")

    def shutdown(self) -> None:
        """Request the end of the agent once it is idle."""
        self._check_alive()
        self.agent.shutdown()

    def steer(self, text: str) -> None:
        """Queue a message for the model."""
        self._check_alive()
        self.agent.steer(text, source=self.plugin)

    def follow_up(self, text: str) -> None:
        """Queue an input that begins its own run."""
        self._check_alive()
        self.agent.follow_up(text, source="plugin")

    def compact(self, instructions: str = "") -> None:
        """Request a compaction at the next opportunity."""
        self._check_alive()
        self.agent.ask_for_compaction(instructions)

    async def reload(self) -> None:
        """Reload skills, prompts and tools."""
        self._check_alive()
        await self.agent.reload()

    async def wait_for_idle(self) -> None:
        """Wait until the agent is idle."""
        await self.agent.wait_for_idle()

    async def new_session(self) -> str:
        """Switch to a new session and return its id."""
        self._check_alive()
        return await self.agent.new_session()

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Switch to a copy of the session's path up to an entry, and return the copy's id."""
        self._check_alive()
        return await self.agent.fork(entry, position=position)

    async def switch_session(self, session: str) -> None:
        """Switch to another session."""
        self._check_alive()
        await self.agent.switch_session(session)

    async def spawn_child(self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5) -> RunResult:
        """Run a task in a child agent and wait for it."""
        self._check_alive()
        return await self.agent.spawn_child(prompt, tools=tools, share=share)
