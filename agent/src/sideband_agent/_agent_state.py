"""What can be asked about an agent at any time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from sideband.contexts import ApprovalMode
from sideband.hooks import HookRegistry
from sideband.messages import Usage
from sideband.settings import AgentSettings, ThinkingLevel
from sideband.tools import ToolView

from ._budget import Allowance
from ._choices import known_level
from ._errors import AgentClosed, ModelMissing
from ._event_stream import EventReader, EventStream
from ._inherited import Inherited
from ._phase import AgentPhase, CurrentPhase
from ._queues import Queues
from ._run import Run
from ._session_parts import SessionParts
from ._session_switcher import SessionSwitcher
from .sessions import Session


class AgentState:
    """The state of an agent.

    Attributes:
        settings: its settings.
        queues: the messages and inputs that wait.
        hooks: its guards and hooks.
        inherited: what it inherits from its parent; ``None`` if it is not a child.
    """

    settings: AgentSettings
    queues: Queues
    hooks: HookRegistry
    inherited: Inherited | None = None
    _model: str | None
    _events: EventStream | None
    _is_closed: bool = False
    _phase: CurrentPhase
    _switcher: SessionSwitcher

    def events(self, *, buffer: int = 1024, history: int | None = None) -> EventReader:
        """Return an async iterator over the events of this agent, from now on, in all sessions that it opens.

        They are those that ``on_event`` gets; those of children are not among them. ``session_start`` and
        ``session_shutdown`` say which session is open. Any number of readers may read at their own speed, and none
        delays the agent: a reader whose buffer is full loses its oldest unread events, and gets ``Lagged`` with their
        number in their place. Read in an ``async with`` block, so that the reader is closed however the block ends.

        Args:
            buffer: the maximum number of unread events.
            history: the maximum number of earlier events to begin with, of those that ``Agent(event_history=…)`` has
                kept; all of them if ``None``.

        Raises:
            AgentClosed: if the agent was closed.
            ValueError: if an argument is not an integer, or too small.

        Example:
            >>> async def follow(agent: Agent) -> None:
            ...     async with agent.events() as reader:
            ...         async for event in reader:
            ...             print(event.hook)
        """
        if self._is_closed:
            raise AgentClosed
        if self._events is None:
            self._events = EventStream(self.hooks)
        return self._events.read(buffer, history)

    def _claim(self, action: str, phase: AgentPhase = AgentPhase.TURN) -> AbstractContextManager[None]:
        """Enter ``phase`` for a block, so that no other operation can begin."""
        _ = self._parts
        return self._phase.claim(action, phase)

    def _end_events(self) -> None:
        self._is_closed = True
        if self._events is not None:
            self._events.end()

    @property
    def _parts(self) -> SessionParts:
        return self._switcher.parts

    @property
    def session(self) -> Session:
        """The open session."""
        return self._parts.session

    @property
    def model(self) -> str:
        """The current model, as ``provider:model``.

        Raises:
            ModelMissing: if no model is configured.
        """
        found = self.run.model if self.run is not None else self._usual_model()
        if found is None:
            raise ModelMissing
        return found

    def _usual_model(self) -> str | None:
        """Return the model that a run begins with."""
        return self._model or self.session.context().model or self.settings.model

    @property
    def thinking(self) -> ThinkingLevel | None:
        """The level of thinking that a run begins with: the session's, otherwise the configured one.

        ``None`` if the provider decides.
        """
        return known_level(self.session.context().thinking) or self.settings.thinking

    @property
    def goal(self) -> str | None:
        """The goal of the session, or ``None``."""
        return self.session.context().goal

    @property
    def approval_mode(self) -> ApprovalMode | None:
        """When a person is asked about changes: the mode of the session, otherwise the configured one.

        ``None`` without a guard that has modes. A child has that of its parent.
        """
        return self._parts.approval.mode

    @property
    def tools(self) -> ToolView:
        """The tools that it may call."""
        return self._parts.tools.newest()

    @property
    def tool_problems(self) -> tuple[str, ...]:
        """The tools of the host and of the session that were omitted, with the reasons."""
        return self._parts.tools.problems

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """Return the skills that its model sees: those with a visible tool, and those without tools."""
        return await self._parts.skills.all()

    @property
    def depth(self) -> int:
        """The number of agents above it: 0 for one that has no parent."""
        return self.inherited.depth if self.inherited else 0

    @property
    def phase(self) -> AgentPhase:
        """The current phase."""
        return self._phase.value

    @property
    def is_idle(self) -> bool:
        """Whether neither a run nor another operation is in progress."""
        return self._phase.is_idle

    @property
    def has_pending_messages(self) -> bool:
        """Whether a message or an input is queued."""
        return bool(self.queues)

    @property
    def run(self) -> Run | None:
        """The run in progress, or ``None``."""
        return self._parts.runner.current

    @property
    def usage(self) -> Usage:
        """The usage of the session, including children and the plugins' own model calls."""
        return self._parts.spending.usage

    @property
    def allowance(self) -> Allowance:
        """The remaining budget."""
        return self._parts.spending.allowance

    async def charge_side_call(self, usage: Usage, plugin: str, source: str = "") -> None:
        """Charge the usage of a model call that a plugin made outside the conversation, once for each source."""
        await self._parts.spending.charge_side_call(usage, plugin, source)

    @property
    def context_tokens(self) -> int:
        """The approximate number of tokens in the conversation."""
        return self._parts.compactor.tokens(self._parts.system_prompt)

    @property
    def context_window(self) -> int | None:
        """The model's context window in tokens, or ``None`` before it has been looked up."""
        try:
            return self._parts.compactor.asked_window(self.model)
        except ModelMissing:
            return None
