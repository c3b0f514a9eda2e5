"""The hooks that only tell, one function each. A plugin that fails here is reported, and changes nothing."""

from __future__ import annotations

from ..contexts import PluginContext
from ._observed import (
    AgentEnd,
    AgentError,
    AgentStart,
    Effect,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelSelect,
    RetryEnd,
    RetryStart,
    SavePoint,
    SessionCompact,
    SessionShutdown,
    SessionStart,
    Settled,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from ._spec import Failure, Kind, spec

__all__: list[str] = []

_DEADLINE = 5.0
"""The seconds that all observers of one event have together: the run waits for them."""


@spec(AgentStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def agent_start(event: AgentStart, ctx: PluginContext) -> None:
    """A run begins. A guard forgets here what it counted in the run before.

    Example:
        >>> from sideband.hooks import AgentStart, hookimpl
        >>> calls = {"http.get": 3}
        >>> @hookimpl
        ... def agent_start(event: AgentStart) -> None:
        ...     calls.clear()
    """


@spec(TurnStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def turn_start(event: TurnStart, ctx: PluginContext) -> None:
    """A turn begins: one model call and the tool calls that it asks for.

    Example:
        >>> from sideband.hooks import TurnStart, hookimpl
        >>> @hookimpl
        ... def turn_start(event: TurnStart) -> None:
        ...     print(f"turn {event.index}")
        >>> turn_start(TurnStart("r1", 0))
        turn 0
    """


@spec(TurnEnd, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def turn_end(event: TurnEnd, ctx: PluginContext) -> None:
    """A turn has ended.

    Example:
        >>> from sideband.hooks import TurnEnd, hookimpl
        >>> results: list[int] = []
        >>> @hookimpl
        ... def turn_end(event: TurnEnd) -> None:
        ...     results.append(len(event.tool_results))
    """


@spec(MessageStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def message_start(event: MessageStart, ctx: PluginContext) -> None:
    """A message begins to arrive.

    Example:
        >>> from sideband.hooks import MessageStart, hookimpl
        >>> roles: list[str] = []
        >>> @hookimpl
        ... def message_start(event: MessageStart) -> None:
        ...     roles.append(event.message["role"])
    """


@spec(MessageUpdate, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def message_update(event: MessageUpdate, ctx: PluginContext) -> None:
    """A part of a message has arrived. Called often: be quick.

    Example:
        >>> from sideband.hooks import MessageUpdate, hookimpl
        >>> @hookimpl
        ... async def message_update(event: MessageUpdate) -> None:
        ...     print(event.delta.get("text", ""), end="")
    """


@spec(MessageEnd, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def message_end(event: MessageEnd, ctx: PluginContext) -> None:
    """A message is complete.

    Example:
        >>> from sideband.hooks import MessageEnd, hookimpl
        >>> words: list[int] = []
        >>> @hookimpl
        ... def message_end(event: MessageEnd) -> None:
        ...     words.append(len(str(event.message["content"]).split()))
    """


@spec(ToolExecutionStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def tool_execution_start(event: ToolExecutionStart, ctx: PluginContext) -> None:
    """A tool begins to run, with arguments that everybody agreed to.

    Example:
        >>> from sideband.hooks import ToolExecutionStart, hookimpl
        >>> running: set[str] = set()
        >>> @hookimpl
        ... def tool_execution_start(event: ToolExecutionStart) -> None:
        ...     running.add(event.id)
    """


@spec(ToolExecutionUpdate, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def tool_execution_update(event: ToolExecutionUpdate, ctx: PluginContext) -> None:
    """A running tool told how far it is. Called often: be quick.

    Example:
        >>> from sideband.hooks import ToolExecutionUpdate, hookimpl
        >>> @hookimpl
        ... def tool_execution_update(event: ToolExecutionUpdate) -> None:
        ...     if event.total:
        ...         print(f"{event.tool}: {event.current or 0:.0f}/{event.total:.0f}")
        >>> tool_execution_update(ToolExecutionUpdate("c1", "demo.harvest", 2, 3))
        demo.harvest: 2/3
    """


@spec(ToolExecutionEnd, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def tool_execution_end(event: ToolExecutionEnd, ctx: PluginContext) -> None:
    """A tool has ended, whichever way.

    Example:
        >>> from sideband.hooks import ToolExecutionEnd, hookimpl
        >>> slow: list[str] = []
        >>> @hookimpl
        ... def tool_execution_end(event: ToolExecutionEnd) -> None:
        ...     if event.ms > 1000:
        ...         slow.append(event.tool)
    """


@spec(RetryStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def retry_start(event: RetryStart, ctx: PluginContext) -> None:
    """A model call failed, and will be repeated after a delay.

    Example:
        >>> from sideband.hooks import RetryStart, hookimpl
        >>> @hookimpl
        ... def retry_start(event: RetryStart) -> None:
        ...     print(f"attempt {event.attempt} in {event.delay:g} s: {event.error['message']}")
        >>> retry_start(RetryStart(1, 2.0, {"message": "overloaded"}))
        attempt 1 in 2 s: overloaded
    """


@spec(RetryEnd, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def retry_end(event: RetryEnd, ctx: PluginContext) -> None:
    """The repetitions of a model call have ended.

    Example:
        >>> from sideband.hooks import RetryEnd, hookimpl
        >>> given_up: list[int] = []
        >>> @hookimpl
        ... def retry_end(event: RetryEnd) -> None:
        ...     if not event.success:
        ...         given_up.append(event.attempts)
    """


@spec(AgentError, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def agent_error(event: AgentError, ctx: PluginContext) -> None:
    """A run has failed. ``agent_end`` follows.

    Example:
        >>> from sideband.hooks import AgentError, hookimpl
        >>> codes: list[str] = []
        >>> @hookimpl
        ... async def agent_error(event: AgentError) -> None:
        ...     codes.append(event.error["code"])
    """


@spec(AgentEnd, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def agent_end(event: AgentEnd, ctx: PluginContext) -> None:
    """A run has ended, and all that was said in it is stored. ``save_point`` follows.

    Example:
        >>> from sideband.hooks import AgentEnd, hookimpl
        >>> reasons: list[str] = []
        >>> @hookimpl
        ... def agent_end(event: AgentEnd) -> None:
        ...     reasons.append(event.reason)
    """


@spec(SavePoint, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def save_point(event: SavePoint, ctx: PluginContext) -> None:
    """Everything up to here survives a crash.

    Example:
        >>> from sideband.hooks import SavePoint, hookimpl
        >>> saved: dict[str, str] = {}
        >>> @hookimpl
        ... def save_point(event: SavePoint) -> None:
        ...     saved[event.session] = event.entry
    """


@spec(Settled, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def settled(event: Settled, ctx: PluginContext) -> None:
    """The agent is idle, and nothing is queued: the moment for work that may take its time.

    Example:
        >>> from sideband.hooks import Settled, hookimpl
        >>> idle: list[str] = []
        >>> @hookimpl
        ... async def settled(event: Settled) -> None:
        ...     idle.append(event.session)
    """


@spec(SessionCompact, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def session_compact(event: SessionCompact, ctx: PluginContext) -> None:
    """A session was compacted.

    Example:
        >>> from sideband.hooks import SessionCompact, hookimpl
        >>> @hookimpl
        ... def session_compact(event: SessionCompact) -> None:
        ...     print(f"compacted by {event.plugin or 'the default strategy'}")
        >>> session_compact(SessionCompact("s1", "e9"))
        compacted by the default strategy
    """


@spec(SessionStart, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def session_start(event: SessionStart, ctx: PluginContext) -> None:
    """A session became the current one.

    Example:
        >>> from sideband.hooks import SessionStart, hookimpl
        >>> current: list[str] = []
        >>> @hookimpl
        ... def session_start(event: SessionStart) -> None:
        ...     current[:] = [event.session]
    """


@spec(SessionShutdown, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def session_shutdown(event: SessionShutdown, ctx: PluginContext) -> None:
    """A session is about to stop being the current one.

    Example:
        >>> from sideband.hooks import SessionShutdown, hookimpl
        >>> left: list[tuple[str, str]] = []
        >>> @hookimpl
        ... async def session_shutdown(event: SessionShutdown) -> None:
        ...     left.append((event.session, event.reason))
    """


@spec(Effect, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def effect(event: Effect, ctx: PluginContext) -> None:
    """An effect has its outcome. The payload is redacted, as in the ledger.

    Example:
        >>> from sideband.hooks import Effect, hookimpl
        >>> refused: list[str] = []
        >>> @hookimpl
        ... def effect(event: Effect) -> None:
        ...     if event.status == "denied":
        ...         refused.append(event.op)
    """


@spec(ModelSelect, Kind.OBSERVE, on_failure=Failure.REPORT, deadline=_DEADLINE)
def model_select(event: ModelSelect, ctx: PluginContext) -> None:
    """Another model was chosen.

    Example:
        >>> from sideband.hooks import ModelSelect, hookimpl
        >>> @hookimpl
        ... def model_select(event: ModelSelect) -> None:
        ...     print(f"{event.previous} -> {event.model}")
        >>> model_select(ModelSelect("large", previous="small"))
        small -> large
    """
