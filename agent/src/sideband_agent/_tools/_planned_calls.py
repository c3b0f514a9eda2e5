"""The calls of one turn, and which of them may run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anyio
from attrs import define, field
from sideband.approvals import ApprovalNeeded
from sideband.messages import ToolCallPart, ToolResultMessage
from sideband.tools import Tool

from ._replays import InterruptedCall
from ._tool_answer import ToolAnswer

_STOPPED = ToolAnswer.error(
    "This call was cancelled while it was running. It may have been executed in part.",
    code="tool.stopped",
    unknown=True,
)
_SKIPPED = ToolAnswer.error("This call was not run because the run ended.", code="tool.skipped")
_GROUP = "parallel_group"


@define(eq=False)
class PlannedCall:
    """A call in progress: it either has an answer or is to be run.

    Attributes:
        part: the call as the model wrote it.
        step: its step in the run.
        tool: the tool, once it is known.
        arguments: valid arguments, once they are known.
        coerced: the paths of arguments that were converted to the type that the tool expects.
        decisions: what guards decided.
        answer: the answer.
        begun: whether the tool was run.
        waits: the approval for which the call waits.
        parks: whether it may wait for an approval after the end of its run, and run again.
        interrupted: the interrupted call that it repeats.
        asked: the seconds in which it waited for a person.
        cancelled: why this call alone was cancelled; ``None`` if it was not.
        scope: the scope in which it is asked about or runs.
    """

    part: ToolCallPart
    step: str
    tool: Tool | None = None
    arguments: dict[str, Any] = field(factory=dict)
    coerced: list[str] = field(factory=list)
    decisions: list[dict[str, Any]] = field(factory=list)
    answer: ToolAnswer | None = None
    begun: bool = False
    waits: ApprovalNeeded | None = None
    parks: bool = True
    interrupted: InterruptedCall | None = None
    asked: float = 0.0
    cancelled: str | None = None
    scope: anyio.CancelScope = field(factory=anyio.CancelScope, repr=False)

    @property
    def message(self) -> ToolResultMessage:
        """The result message, also for a call that was cancelled or skipped."""
        return (self.answer or (_STOPPED if self.begun else _SKIPPED)).message(self.part)

    def cancel(self, reason: str) -> bool:
        """Cancel this call. Return whether it had no answer yet."""
        if self.answer is not None or self.cancelled is not None:
            return False
        self.cancelled = reason
        self.scope.cancel()
        return True

    @property
    def cancellation(self) -> ToolAnswer:
        """The answer to the call if it was cancelled alone."""
        reason = f" ({self.cancelled})" if self.cancelled else ""
        if not self.begun:
            return ToolAnswer.error(f"This call was cancelled{reason}. It was not run.", code="tool.cancelled")
        return ToolAnswer.error(
            f"This call was cancelled while it was running{reason}. It may have been executed in part.",
            code="tool.cancelled",
            unknown=True,
        )


def groups(planned: Iterable[PlannedCall], find: Callable[[str], Tool | None]) -> Iterator[list[PlannedCall]]:
    """Yield the groups of calls that may run at the same time, one after the other.

    A call of an exclusive tool is a group of its own, and no call passes it. Between two of them, calls whose
    ``parallel_group`` is equal are a group; the groups are in the order of their first calls.

    Args:
        planned: the calls of a turn.
        find: returns a tool by its name.
    """
    waiting: dict[str, list[PlannedCall]] = {}
    for one in planned:
        tool = find(one.part.name)
        if tool is None or not tool.exclusive:
            waiting.setdefault(group_of(one.part, tool), []).append(one)
            continue
        yield from waiting.values()
        yield [one]
        waiting = {}
    yield from waiting.values()


def group_of(part: ToolCallPart, tool: Tool | None) -> str:
    """Return the name of the group of a call: what the model chose if the tool lets it, else that of its tool."""
    if tool is None:
        return ""
    properties = tool.parameters.get("properties")
    chosen = part.arguments.get(_GROUP) if isinstance(properties, dict) and _GROUP in properties else None
    return chosen if isinstance(chosen, str) and chosen else tool.parallel_group
