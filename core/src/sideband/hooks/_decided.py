"""The events that are about to happen, and that implementations may deny."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import field, frozen

from ..ops import Level, Origin
from ._event import DecideEvent, Failure
from ._frozen import as_tuple, freeze
from ._results import Allow, Ask, Cancel, Deny, Replace

__all__ = [
    "OpCall",
    "SessionBeforeFork",
    "SessionBeforeSwitch",
    "ToolCall",
]


@frozen
class ToolCall(DecideEvent):
    """A model asks for a tool, with valid arguments: decide whether it may run, and with which arguments.

    The first ``Deny`` wins, then ``Ask``. After a ``Replace`` the new arguments are validated, and those who have
    answered already are asked again, so that all have seen what will run. An implementation that fails denies.

    Attributes:
        id: the id of the call.
        tool: the tool, ``github.stars``.
        arguments: by name.
        level: the highest level that the tool's grant reaches.
        read_only: whether the tool says that it changes nothing.

    Example:
        >>> from sideband.hooks import Ask, Deny, Replace, ToolCall, hookimpl
        >>> @hookimpl
        ... async def tool_call(event: ToolCall) -> Ask | Deny | Replace | None:
        ...     if event.tool == "notes.delete":
        ...         return Ask(f"Delete {event.arguments['path']}?")
        ...     if event.tool == "notes.list" and event.arguments.get("limit", 0) > 100:
        ...         return Replace({**event.arguments, "limit": 100})
        ...     return None
    """

    may_return = (Allow, Deny, Replace, Ask)
    on_failure = Failure.DENY
    deadline = 60
    replaceable = "arguments"

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)
    level: Level = Level.MONITORED
    read_only: bool = False


@frozen
class OpCall(DecideEvent):
    """An effect that the grant covers is about to happen: decide whether it may happen now.

    The rules are those of ``tool_call``. An implementation that dispatches an op of its own causes another ``op_call``,
    and must let that one pass.

    Attributes:
        effect: the id of the effect in the ledger.
        op: the op, ``http.get``.
        params: the validated parameters, by name.
        level: how much the op can do to the world.
        origin: who caused it, as the host knows it.
        grant: the capabilities of the call, as text.
        idempotent: whether doing it twice is the same as once.
        key: the idempotency key, if there is one.
        preview: tells what would happen with given parameters, without doing it; ``None`` if the op can't.
        previewed: what would happen, once a person is asked about it.

    Example:
        >>> from sideband.hooks import Allow, Deny, OpCall, hookimpl
        >>> from sideband.ops import Level
        >>> @hookimpl
        ... def op_call(event: OpCall) -> Allow | Deny:
        ...     if event.level >= Level.RESTRICTED and event.origin.principal != "user":
        ...         return Deny("only the user may do what can't be undone")
        ...     return Allow("within the rules for guests")
    """

    may_return = (Allow, Deny, Replace, Ask)
    on_failure = Failure.DENY
    deadline = 60
    replaceable = "params"

    effect: str
    op: str
    params: Mapping[str, Any] = field(converter=freeze)
    level: Level
    origin: Origin
    grant: tuple[str, ...] = field(default=(), converter=as_tuple)
    idempotent: bool = False
    key: str | None = None
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = field(default=None, repr=False, eq=False)
    previewed: str | None = None


@frozen
class SessionBeforeSwitch(DecideEvent):
    """Another session is about to become the current one. ``Cancel`` keeps the user in this one.

    A plugin that fails does not.

    Attributes:
        reason: ``new`` or ``resume``.
        target: the id of the other session, ``None`` for a new one.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeSwitch, hookimpl
        >>> unsaved = ["draft.md"]
        >>> @hookimpl
        ... def session_before_switch(event: SessionBeforeSwitch) -> Cancel | None:
        ...     return Cancel(f"{unsaved[0]} is not saved") if unsaved else None
    """

    may_return = (Cancel,)
    on_failure = Failure.REPORT
    deadline = 30

    reason: str
    target: str | None = None


@frozen
class SessionBeforeFork(DecideEvent):
    """A session is about to be forked. ``Cancel`` keeps the user from it.

    A plugin that fails does not.

    Attributes:
        session: the id of the session.
        entry: the id of the entry where it forks.
        position: ``before`` the entry, or ``at`` it.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeFork, hookimpl
        >>> @hookimpl
        ... def session_before_fork(event: SessionBeforeFork) -> Cancel | None:
        ...     return Cancel("the first entry can't be forked before") if event.position == "before" else None
    """

    may_return = (Cancel,)
    on_failure = Failure.REPORT
    deadline = 30

    session: str
    entry: str
    position: str = "at"
