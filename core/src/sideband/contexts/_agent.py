"""The context that hooks and tools receive within an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from ..models._messages import Message, Usage
from ._op import ApprovalMode
from ._plugin import PluginContext


class AgentSession(Protocol):
    """The session of an agent, as visible to plugins.

    Attributes:
        id: the id of the session.
        name: the name that the user gave it, or ``None``.
        channel: the channel of the user, such as ``cli`` or ``server``.
    """

    @property
    def id(self) -> str:
        """The id of the session."""

    @property
    def name(self) -> str | None:
        """The name that the user gave it, or ``None``."""

    @property
    def channel(self) -> str:
        """The channel of the user, such as ``cli`` or ``server``."""

    def messages(self) -> Sequence[Message]:
        """Return the messages that the model would see now, oldest first, with summaries for compacted ones."""

    def all_messages(self) -> Sequence[Message]:
        """Return all messages of the conversation, oldest first, also those that were compacted."""

    async def append_custom(self, kind: str, data: Mapping[str, Any]) -> str:
        """Store plugin-specific data, which is not sent to a model, and return the id of the entry."""

    def last_custom(self, kind: str) -> Mapping[str, Any] | None:
        """Return the data of this kind that was stored last, or ``None``.

        Data that was stored after the point to which the session was rewound, or at which it was forked, is not found.
        """


class ChildResult(Protocol):
    """The result of a child agent.

    Attributes:
        status: ``completed``, ``aborted``, ``failed`` or ``parked``.
        text: the last answer of the child.
        usage: the usage of the child.
    """

    @property
    def status(self) -> str:
        """``completed``, ``aborted``, ``failed`` or ``parked``."""

    @property
    def text(self) -> str:
        """The last answer of the child."""

    @property
    def usage(self) -> Usage:
        """The usage of the child."""


class AgentContext(PluginContext, Protocol):
    """The context of hook implementations and tools within an agent.

    ``new_session``, ``fork``, ``switch_session`` and ``reload`` raise ``AgentBusy`` during a run. ``compact`` is then
    deferred to the next opportunity.

    Attributes:
        session: the session.
        run: the id of the run; empty between runs.
        model: ``provider:model``.
        is_idle: whether no run is in progress.
        has_pending_messages: whether messages are queued.
        usage: the usage of the session, including its children.
        system_prompt: the system prompt of this run.
        folder: the working directory of the agent, as an absolute path.
        approval_mode: when a person is asked about changes; ``None`` without a guard that has modes. Only the user
            selects another one, or approves one together with a plan.
    """

    @property
    def session(self) -> AgentSession:
        """The session."""

    @property
    def run(self) -> str:
        """The id of the run; empty between runs."""

    @property
    def model(self) -> str:
        """``provider:model``."""

    @property
    def is_idle(self) -> bool:
        """Whether no run is in progress."""

    @property
    def has_pending_messages(self) -> bool:
        """Whether messages are queued."""

    @property
    def usage(self) -> Usage:
        """The usage of the session, including its children."""

    @property
    def system_prompt(self) -> str:
        """The system prompt of this run."""

    @property
    def folder(self) -> Path:
        """The working directory of the agent, as an absolute path."""

    @property
    def approval_mode(self) -> ApprovalMode | None:
        """When a person is asked about changes."""

    def abort(self, reason: str = "") -> None:
        """Abort the run at its next await. Messages and effects so far are kept."""

    def shutdown(self) -> None:
        """Request that the owner of the agent closes it once it is idle."""

    def steer(self, text: str) -> None:
        """Queue a message for the model's next step."""

    def follow_up(self, text: str) -> None:
        """Queue a message that starts another run after this one."""

    def compact(self, instructions: str = "") -> None:
        """Request a compaction at the next opportunity."""

    async def reload(self) -> None:
        """Reload skills, prompts and tools."""

    async def wait_for_idle(self) -> None:
        """Wait until no run is in progress. Calling it within a run deadlocks."""

    async def new_session(self) -> str:
        """Switch to a new session and return its id."""

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Switch to a copy of the session's path up to an entry and return the id of the new session."""

    async def switch_session(self, session: str) -> None:
        """Switch to another session."""

    async def spawn_child(
        self,
        prompt: str,
        *,
        tools: Sequence[str] | None = None,
        share: float = 0.5,
    ) -> ChildResult:
        """Run a task in a child agent and return its result. The child is cancelled with its parent.

        Args:
            prompt: the task. The child sees no other part of the conversation.
            tools: the tools that the child may call, a subset of the parent's; ``None`` for all of them.
            share: the share of the parent's remaining budget that the child may use, from 0 to 1.

        Raises:
            SidebandError: if the depth limit is reached.
        """
