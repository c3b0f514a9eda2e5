"""Events of runs, of their retries and of the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from .._event import Message, ObserveEvent
from .._frozen import as_tuple, freeze

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "QueueUpdate",
    "RetryEnd",
    "RetryStart",
    "RouteEnd",
    "SavePoint",
    "Settled",
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
class QueueUpdate(ObserveEvent):
    """A message was queued, or has left its queue. Changes are reported in order, also while the agent is idle.

    Attributes:
        queue: ``steering`` for messages before the next step, ``follow_up`` for inputs of later runs.
        change: ``added``, ``taken`` for the conversation, or ``cleared``.
        texts: the texts of these messages.
        waiting: the texts that then wait in the queue, the next one first; at most the first 20.
        count: the number of messages that then wait in the queue.

    Example:
        >>> from sideband.hooks import QueueUpdate, hookimpl
        >>> @hookimpl
        ... def queue_update(event: QueueUpdate) -> None:
        ...     print(f"{event.count} waiting, {event.change}: {', '.join(event.texts)}")
        >>> queue_update(QueueUpdate("steering", "added", ["use euros"], ["use euros"], 1))
        1 waiting, added: use euros
    """

    queue: str
    change: str
    texts: Sequence[str] = field(converter=as_tuple)
    waiting: Sequence[str] = field(converter=as_tuple)
    count: int


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
class RouteEnd(ObserveEvent):
    """A route that matched an input has ended.

    Attributes:
        run: the id of the run.
        name: the name of the route.
        plugin: the plugin that added it.
        reason: why it matched, why it declined or how it failed.
        handled: whether its reply is the answer to the input.
        ms: how long its handler took, in milliseconds.

    Example:
        >>> from sideband.hooks import RouteEnd, hookimpl
        >>> handled: list[str] = []
        >>> @hookimpl
        ... def route_end(event: RouteEnd) -> None:
        ...     if event.handled:
        ...         handled.append(f"{event.plugin}: {event.name}")
    """

    run: str
    name: str
    plugin: str
    reason: str
    handled: bool
    ms: float


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
