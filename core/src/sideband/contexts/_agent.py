"""The context that hooks and tools get while an agent is at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from ..models._messages import Message, Usage
from ._plugin import PluginContext


class AgentSession(Protocol):
    """The session of an agent, as plugins see it.

    Attributes:
        id: its id.
        name: what the user calls it; ``None`` if it has no name.
        channel: where its user is: ``cli``, ``server``, …
    """

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def name(self) -> str | None:
        """What the user calls it."""

    @property
    def channel(self) -> str:
        """Where its user is."""

    def messages(self) -> Sequence[Message]:
        """What the model would see now: oldest first, what was compacted replaced by its summary."""

    async def append_custom(self, kind: str, data: Mapping[str, Any]) -> str:
        """Store data of a plugin's own, which no model sees; returns the id of the entry."""


class ChildResult(Protocol):
    """What a child agent came to.

    Attributes:
        status: ``completed``, ``aborted``, ``failed`` or ``parked``.
        text: its last answer.
        usage: what it used.
    """

    @property
    def status(self) -> str:
        """How it ended."""

    @property
    def text(self) -> str:
        """Its last answer."""

    @property
    def usage(self) -> Usage:
        """What it used."""


class AgentContext(PluginContext, Protocol):
    """What hook implementations and tools get while an agent is at work, besides what every plugin gets.

    Calls that change the structure of the conversation (``new_session``, ``fork``, ``switch_session``, ``reload``) are
    refused with ``AgentBusy`` while a run is under way; ``compact`` then asks for it, and it happens at the next
    chance.

    Attributes:
        session: the session.
        run: the id of the run; empty between runs.
        model: ``provider:model``.
        is_idle: whether no run is under way.
        has_pending_messages: whether something is queued.
        usage: what the session has used.
        system_prompt: the system prompt of this run.
    """

    @property
    def session(self) -> AgentSession:
        """The session."""

    @property
    def run(self) -> str:
        """The id of the run."""

    @property
    def model(self) -> str:
        """``provider:model``."""

    @property
    def is_idle(self) -> bool:
        """Whether no run is under way."""

    @property
    def has_pending_messages(self) -> bool:
        """Whether something is queued."""

    @property
    def usage(self) -> Usage:
        """What the session has used, children included."""

    @property
    def system_prompt(self) -> str:
        """The system prompt of this run."""

    def abort(self, reason: str = "") -> None:
        """End the run at its next wait. What was said and done until then is kept."""

    def shutdown(self) -> None:
        """Ask whoever runs the agent to end it, once it is idle."""

    def steer(self, text: str) -> None:
        """Queue a message for the model, to be seen before its next step."""

    def follow_up(self, text: str) -> None:
        """Queue a message that begins another run when this one is done."""

    def compact(self, instructions: str = "") -> None:
        """Ask for a compaction at the next chance."""

    async def reload(self) -> None:
        """Read skills, prompts and tools anew."""

    async def wait_for_idle(self) -> None:
        """Wait until no run is under way. Not from within a run, which would wait for itself."""

    async def new_session(self) -> str:
        """Leave the session for a new one; returns its id."""

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Leave the session for a copy of its path up to an entry; returns its id."""

    async def switch_session(self, session: str) -> None:
        """Leave the session for another one."""

    async def spawn_child(
        self,
        prompt: str,
        *,
        tools: Sequence[str] | None = None,
        share: float = 0.5,
    ) -> ChildResult:
        """Let a child agent do a task, and wait for it. It is cancelled with the parent.

        Args:
            prompt: the task. The child sees nothing else of the conversation.
            tools: the tools that it may call; ``None``: those of the parent. Never more.
            share: how much of what is left of the parent's budget the child may use.

        Raises:
            SidebandError: the depth limit is reached.
        """
