"""Events of tool calls and of effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...ops import Level, Origin
from .._event import ObserveEvent
from .._frozen import as_tuple, freeze

__all__ = [
    "Effect",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolProgress",
]


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
    """A running tool has reported progress. Only the newest report is passed on; `tool_progress` has all of them.

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
class ToolProgress(ObserveEvent):
    """The progress of a running tool: output, a report, a gap in a stream, or the end of a stream.

    The source may be the tool itself, or an op, command or child effect that it causes. No report and no byte of output
    is lost without a gap. Text is collected for 50 ms or up to 16 KiB. The events of a stream arrive in order: the
    offset of an event is that of the one before, plus its size. Progress is redacted, is never stored, and is not sent
    to the model.

    Of ``text``, ``gap``, ``closed`` and the fields of a report, one is set.

    Attributes:
        call: the id of the call.
        tool: the name of the tool; of a call without a tool, that of the op.
        stream: ``stdout``, ``stderr`` or another name for output, ``progress`` for reports.
        offset: the position in the stream: in bytes of UTF-8 for output, in reports for ``progress``.
        source: the tool or op that the text or report comes from; empty for others.
        text: the next part of the output. It ends between two characters, and not necessarily at the end of a line.
        current: the amount of work done, if known.
        total: the total amount of work, if known.
        message: the message of a report.
        unit: the unit of both amounts, such as ``bytes``, if they have one.
        gap: the number of bytes or reports that were lost because implementations were too slow.
        closed: whether the stream has ended. It is the last event of the stream, however the call ends.

    Example:
        >>> from sideband.hooks import ToolProgress, hookimpl
        >>> @hookimpl
        ... def tool_progress(event: ToolProgress) -> None:
        ...     if event.text is not None:
        ...         print(event.text)
        ...     elif event.gap is not None and event.stream != "progress":
        ...         print(f"[{event.gap:,} bytes omitted]")
        >>> tool_progress(ToolProgress("c1", "build.all", "stdout", 0, "shell.run", text="compiling"))
        compiling
        >>> tool_progress(ToolProgress("c1", "build.all", "stdout", 9, gap=2_000_000))
        [2,000,000 bytes omitted]
    """

    call: str
    tool: str
    stream: str
    offset: int
    source: str = ""
    text: str | None = None
    current: float | None = None
    total: float | None = None
    message: str | None = None
    unit: str | None = None
    gap: int | None = None
    closed: bool = False


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
        egress: whether it may have sent data to another machine itself, or would have if it had not been refused, as
            its op declares; true if that is unknown.
        call: the id of the call that it belongs to; all effects of a call have the same.
        within: the id of the effect that caused it, or ``None``.
        result: the fields of the result that its op reports, such as ``usage``; empty if it failed.

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
    egress: bool = True
    call: str = ""
    within: str | None = None
    result: Mapping[str, Any] = field(factory=dict, converter=freeze)
