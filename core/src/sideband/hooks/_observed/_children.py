"""Events of child agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from .._event import ObserveEvent
from .._frozen import as_tuple, freeze

__all__ = [
    "SubagentEnd",
    "SubagentStart",
]


@frozen
class SubagentStart(ObserveEvent):
    """A child agent begins or continues its task. ``subagent_end`` always follows.

    Attributes:
        session: the id of the child's session, which identifies the child.
        task: the task, up to 2,000 characters.
        tools: the names of the tools that the child may call.
        run: the id of the parent's run; empty between runs.
        call: the tool call that the child works for, as ``session:run:step``, or ``None``.
        resumed: whether the child continues a task that was interrupted.

    Example:
        >>> from sideband.hooks import SubagentStart, hookimpl
        >>> @hookimpl
        ... def subagent_start(event: SubagentStart) -> None:
        ...     print(f"child {event.session} has {len(event.tools)} tools")
        >>> subagent_start(SubagentStart("c1", "count the stars", ["github.stars"]))
        child c1 has 1 tools
    """

    session: str
    task: str
    tools: tuple[str, ...] = field(converter=as_tuple)
    run: str = ""
    call: str | None = None
    resumed: bool = False


@frozen
class SubagentEnd(ObserveEvent):
    """A child agent has ended, whether it succeeded or not.

    Attributes:
        session: the id of the child's session.
        status: ``completed``, ``failed``, ``parked``, or ``aborted`` if it was cancelled.
        text: its answer, up to 2,000 characters.
        usage: the usage of its session as data, such as ``input`` and ``output`` in tokens and ``cost`` in US dollars.
        error: why it did not complete, as data, or ``None``.

    Example:
        >>> from sideband.hooks import SubagentEnd, hookimpl
        >>> failed: list[str] = []
        >>> @hookimpl
        ... async def subagent_end(event: SubagentEnd) -> None:
        ...     if event.status == "failed":
        ...         failed.append(event.session)
    """

    session: str
    status: str
    text: str = ""
    usage: Mapping[str, Any] = field(factory=dict, converter=freeze)
    error: Mapping[str, Any] | None = field(default=None, converter=freeze)
