"""Events of the kind `observe`: they have happened, and implementations cannot change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ..ops import Level, Origin
from ._event import Message, ObserveEvent
from ._frozen import as_tuple, freeze

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "Effect",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ModelSelect",
    "RetryEnd",
    "RetryStart",
    "SavePoint",
    "SessionCompact",
    "SessionShutdown",
    "SessionStart",
    "Settled",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
]


@frozen
class AgentStart(ObserveEvent):
    """A run begins. Guards reset their counters here.

    Attributes:
        run: the id of the run.
        source: the origin of its input, as in ``Input``.

    Example:
        >>> from sideband.hooks import AgentStart, hookimpl
        >>> calls = {"http.get": 3}
        >>> @hookimpl
        ... def agent_start(event: AgentStart) -> None:
        ...     calls.clear()
    """

    run: str
    source: str = "interactive"


@frozen
class TurnStart(ObserveEvent):
    """A turn begins. A turn is one model call and the tool calls that it requests.

    Attributes:
        run: the id of the run.
        index: the index of the turn in its run, from 0.

    Example:
        >>> from sideband.hooks import TurnStart, hookimpl
        >>> @hookimpl
        ... def turn_start(event: TurnStart) -> None:
        ...     print(f"turn {event.index}")
        >>> turn_start(TurnStart("r1", 0))
        turn 0
    """

    run: str
    index: int


@frozen
class TurnEnd(ObserveEvent):
    """A turn has ended.

    Attributes:
        run: the id of the run.
        index: the index of the turn in its run, from 0.
        message: the message of the model.
        tool_results: the results of its tool calls, in the order of the calls.

    Example:
        >>> from sideband.hooks import TurnEnd, hookimpl
        >>> results: list[int] = []
        >>> @hookimpl
        ... def turn_end(event: TurnEnd) -> None:
        ...     results.append(len(event.tool_results))
    """

    run: str
    index: int
    message: Message = field(converter=freeze)
    tool_results: Sequence[Message] = field(default=(), converter=freeze)


@frozen
class MessageStart(ObserveEvent):
    """A message begins to arrive.

    Attributes:
        message: the part that is known so far; always contains the role.

    Example:
        >>> from sideband.hooks import MessageStart, hookimpl
        >>> roles: list[str] = []
        >>> @hookimpl
        ... def message_start(event: MessageStart) -> None:
        ...     roles.append(event.message["role"])
    """

    message: Message = field(converter=freeze)


@frozen
class MessageUpdate(ObserveEvent):
    """A part of a message has arrived.

    This hook is called often, so implementations must be fast.

    Attributes:
        delta: the new part.

    Example:
        >>> from sideband.hooks import MessageUpdate, hookimpl
        >>> @hookimpl
        ... async def message_update(event: MessageUpdate) -> None:
        ...     print(event.delta.get("text", ""), end="")
    """

    delta: Mapping[str, Any] = field(converter=freeze)


@frozen
class MessageEnd(ObserveEvent):
    """A message is complete.

    Attributes:
        message: the complete message.

    Example:
        >>> from sideband.hooks import MessageEnd, hookimpl
        >>> words: list[int] = []
        >>> @hookimpl
        ... def message_end(event: MessageEnd) -> None:
        ...     words.append(len(str(event.message["content"]).split()))
    """

    message: Message = field(converter=freeze)


@frozen
class ToolExecutionStart(ObserveEvent):
    """A tool call was allowed and begins to run.

    Attributes:
        id: the id of the call.
        tool: the name of the tool.
        arguments: the final arguments.

    Example:
        >>> from sideband.hooks import ToolExecutionStart, hookimpl
        >>> running: set[str] = set()
        >>> @hookimpl
        ... def tool_execution_start(event: ToolExecutionStart) -> None:
        ...     running.add(event.id)
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)


@frozen
class ToolExecutionUpdate(ObserveEvent):
    """A running tool has reported progress.

    This hook is called often, so implementations must be fast.

    Attributes:
        id: the id of the call.
        tool: the name of the tool.
        current: the amount of work done, if known.
        total: the total amount of work, if known.
        message: the progress message.
        unit: the unit of both amounts, such as ``bytes``, if they have one.

    Example:
        >>> from sideband.hooks import ToolExecutionUpdate, hookimpl
        >>> @hookimpl
        ... def tool_execution_update(event: ToolExecutionUpdate) -> None:
        ...     if event.total:
        ...         print(f"{event.tool}: {event.current or 0:.0f}/{event.total:.0f}")
        >>> tool_execution_update(ToolExecutionUpdate("c1", "demo.harvest", 2, 3))
        demo.harvest: 2/3
    """

    id: str
    tool: str
    current: float | None = None
    total: float | None = None
    message: str | None = None
    unit: str | None = None


@frozen
class ToolExecutionEnd(ObserveEvent):
    """A tool call has ended, whether it succeeded or not.

    Attributes:
        id: the id of the call.
        tool: the name of the tool.
        content: the result, as the model sees it.
        is_error: whether the call failed.
        ms: the duration in milliseconds.
        hint: what the user can do about a failure; it is also the end of the content.

    Example:
        >>> from sideband.hooks import ToolExecutionEnd, hookimpl
        >>> slow: list[str] = []
        >>> @hookimpl
        ... def tool_execution_end(event: ToolExecutionEnd) -> None:
        ...     if event.ms > 1000:
        ...         slow.append(event.tool)
    """

    id: str
    tool: str
    content: Any = field(converter=freeze)
    is_error: bool = False
    ms: float = 0.0
    hint: str = ""


@frozen
class RetryStart(ObserveEvent):
    """A model call has failed and will be retried.

    Attributes:
        attempt: the number of the retry, from 1.
        delay: the delay before the retry, in seconds.
        error: the failure, as data.

    Example:
        >>> from sideband.hooks import RetryStart, hookimpl
        >>> @hookimpl
        ... def retry_start(event: RetryStart) -> None:
        ...     print(f"attempt {event.attempt} in {event.delay:g} s: {event.error['message']}")
        >>> retry_start(RetryStart(1, 2.0, {"message": "overloaded"}))
        attempt 1 in 2 s: overloaded
    """

    attempt: int
    delay: float
    error: Mapping[str, Any] = field(converter=freeze)


@frozen
class RetryEnd(ObserveEvent):
    """The retries of a model call have ended.

    Attributes:
        attempts: the number of retries.
        success: whether the last one succeeded.

    Example:
        >>> from sideband.hooks import RetryEnd, hookimpl
        >>> given_up: list[int] = []
        >>> @hookimpl
        ... def retry_end(event: RetryEnd) -> None:
        ...     if not event.success:
        ...         given_up.append(event.attempts)
    """

    attempts: int
    success: bool


@frozen
class AgentError(ObserveEvent):
    """A run has failed. ``agent_end`` follows.

    Attributes:
        run: the id of the run.
        error: the failure, as data.

    Example:
        >>> from sideband.hooks import AgentError, hookimpl
        >>> codes: list[str] = []
        >>> @hookimpl
        ... async def agent_error(event: AgentError) -> None:
        ...     codes.append(event.error["code"])
    """

    run: str
    error: Mapping[str, Any] = field(converter=freeze)


@frozen
class AgentEnd(ObserveEvent):
    """A run has ended, and its messages are stored. ``save_point`` follows.

    Attributes:
        run: the id of the run.
        reason: ``completed``, ``aborted``, ``error`` if the run failed (status ``failed``), or ``parked`` if it
            waits and can be resumed later.
        messages: the messages of the run, oldest first.

    Example:
        >>> from sideband.hooks import AgentEnd, hookimpl
        >>> reasons: list[str] = []
        >>> @hookimpl
        ... def agent_end(event: AgentEnd) -> None:
        ...     reasons.append(event.reason)
    """

    run: str
    reason: str
    messages: Sequence[Message] = field(default=(), converter=freeze)


@frozen
class SavePoint(ObserveEvent):
    """All entries of the session so far are on disk and survive a crash.

    Attributes:
        session: the id of the session.
        entry: the id of the last stored entry.

    Example:
        >>> from sideband.hooks import SavePoint, hookimpl
        >>> saved: dict[str, str] = {}
        >>> @hookimpl
        ... def save_point(event: SavePoint) -> None:
        ...     saved[event.session] = event.entry
    """

    session: str
    entry: str


@frozen
class Settled(ObserveEvent):
    """The agent is idle and its queues are empty.

    Use this hook for slow background work.

    Attributes:
        session: the id of the session.

    Example:
        >>> from sideband.hooks import Settled, hookimpl
        >>> idle: list[str] = []
        >>> @hookimpl
        ... async def settled(event: Settled) -> None:
        ...     idle.append(event.session)
    """

    session: str


@frozen
class SessionCompact(ObserveEvent):
    """A session was compacted.

    Attributes:
        session: the id of the session.
        entry: the id of the entry that holds the summary.
        plugin: the plugin that wrote the summary, or ``None`` for the default strategy.

    Example:
        >>> from sideband.hooks import SessionCompact, hookimpl
        >>> @hookimpl
        ... def session_compact(event: SessionCompact) -> None:
        ...     print(f"compacted by {event.plugin or 'the default strategy'}")
        >>> session_compact(SessionCompact("s1", "e9"))
        compacted by the default strategy
    """

    session: str
    entry: str
    plugin: str | None = None


@frozen
class SessionStart(ObserveEvent):
    """A session has become the current one.

    Attributes:
        session: the id of the session.
        reason: ``startup``, ``reload``, ``new``, ``resume`` or ``fork``.
        previous: the id of the previous session, if any.

    Example:
        >>> from sideband.hooks import SessionStart, hookimpl
        >>> current: list[str] = []
        >>> @hookimpl
        ... def session_start(event: SessionStart) -> None:
        ...     current[:] = [event.session]
    """

    session: str
    reason: str = "startup"
    previous: str | None = None


@frozen
class SessionShutdown(ObserveEvent):
    """The current session is about to be closed.

    Attributes:
        session: the id of the session.
        reason: ``quit``, ``reload``, ``new``, ``resume`` or ``fork``.
        target: the id of the next session, if any.

    Example:
        >>> from sideband.hooks import SessionShutdown, hookimpl
        >>> left: list[tuple[str, str]] = []
        >>> @hookimpl
        ... async def session_shutdown(event: SessionShutdown) -> None:
        ...     left.append((event.session, event.reason))
    """

    session: str
    reason: str = "quit"
    target: str | None = None


@frozen
class Effect(ObserveEvent):
    """An effect has ended. The payload is what the ledger stores: redacted, and limited to recordable fields.

    Attributes:
        effect: the id of the effect in the ledger.
        op: the name of the op.
        status: ``done``, ``failed``, ``denied``, ``cancelled`` or ``unknown``.
        origin: the caller.
        level: the level of the op, or ``None`` if the op is unknown.
        params: the recorded parameters.
        grant: the capabilities of the call, as text.
        decisions: the decisions of the guards, as data, in order.
        error: the failure as data, or ``None``.
        ms: the duration in milliseconds.
        bytes: the size of the result in bytes, if known.
        isolation: the isolation tier of the worker that requested it, or ``None`` if it was not requested by a worker.

    Example:
        >>> from sideband.hooks import Effect, hookimpl
        >>> refused: list[str] = []
        >>> @hookimpl
        ... def effect(event: Effect) -> None:
        ...     if event.status == "denied":
        ...         refused.append(event.op)
    """

    effect: str
    op: str
    status: str
    origin: Origin
    level: Level | None = None
    params: Mapping[str, Any] = field(factory=dict, converter=freeze)
    grant: tuple[str, ...] = field(default=(), converter=as_tuple)
    decisions: Sequence[Any] = field(default=(), converter=freeze)
    error: Mapping[str, Any] | None = field(default=None, converter=freeze)
    ms: float = 0.0
    bytes: int | None = None
    isolation: str | None = None


@frozen
class ModelSelect(ObserveEvent):
    """Another model was selected.

    Attributes:
        model: the name of the model.
        previous: the name of the previous model, if any.
        source: ``set``, ``cycle``, ``restore``, or ``fallback`` if the previous model is unavailable.

    Example:
        >>> from sideband.hooks import ModelSelect, hookimpl
        >>> @hookimpl
        ... def model_select(event: ModelSelect) -> None:
        ...     print(f"{event.previous} -> {event.model}")
        >>> model_select(ModelSelect("large", previous="small"))
        small -> large
    """

    model: str
    previous: str | None = None
    source: str = "set"
