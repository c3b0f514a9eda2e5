"""What a session uses: noted as it happens, stored with the session, and taken from its budget."""

from __future__ import annotations

from datetime import datetime
from typing import Self

import anyio
from attrs import define, field
from sideband.messages import AssistantMessage, ToolResultMessage, Usage

from ._budget import Allowance, Budget
from .sessions import CustomEntry, MessageEntry, RunEntry, Session

_RAN = ("ms", "replayed", "unknown")
"""What stands in the metadata of a result only if its tool was run."""


@define(eq=False)
class Spending:
    """What one session has used, and what is left of its budget.

    Args:
        session: the session.
        allowance: its budget, or its share of a parent's.
        usage: what its model calls used, children and side calls of plugins included.
    """

    session: Session = field(repr=False)
    allowance: Allowance
    usage: Usage = field(factory=Usage)
    _counted_until: float = field(default=0.0, init=False)

    @classmethod
    def of(cls, session: Session, limit: Budget, share: Allowance | None = None) -> Self:
        """The spending of a session that was opened: what it has used before counts.

        Args:
            session: the session.
            limit: what it may use in all.
            share: a share of a parent's budget, which takes the place of ``limit``.
        """
        usage, used = _spent(session)
        return cls(session, share or Allowance(limit, used=used), usage)

    def charge_answer(self, usage: Usage) -> None:
        """Note what a model call of the conversation used."""
        self.usage += usage
        self.allowance.charge(usage)

    def charge_tool_call(self) -> None:
        """Note a tool call that is about to run.

        Raises:
            BudgetSpent: no call, or no time, is left.
        """
        self.allowance.check("calls", "seconds")
        self.allowance.charge(calls=1)

    def start_clock(self) -> None:
        """Count time from now on."""
        self._counted_until = anyio.current_time()

    def charge_time(self) -> None:
        """Note how long the session was at work since this was noted last."""
        now = anyio.current_time()
        self.allowance.charge(seconds=now - self._counted_until)
        self._counted_until = now

    async def charge_side_call(self, usage: Usage, plugin: str) -> None:
        """Note what a plugin's model call beside the conversation used."""
        self.allowance.charge(usage)
        await self.note(usage, plugin)

    async def note(self, usage: Usage, plugin: str) -> None:
        """Store what was used beside the conversation, and is charged already."""
        self.usage += usage
        data = usage.model_dump(mode="json", exclude_none=True)
        with anyio.CancelScope(shield=True):  # it was paid for, also by who is cancelled: a budget must know of it
            await self.session.append(CustomEntry(plugin=plugin, kind="usage", data=data))


def _spent(session: Session) -> tuple[Usage, Budget]:
    """What a session has used before, on all its branches."""
    usage, calls, seconds = Usage(), 0, 0.0
    began: dict[str, str] = {}
    for entry in session.tree.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            usage += entry.message.usage
        elif isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            calls += not entry.message.metadata.keys().isdisjoint(_RAN)
        elif isinstance(entry, CustomEntry) and entry.kind == "usage":
            usage += _usage(entry.data)
        elif isinstance(entry, RunEntry) and entry.status == "started":
            began[entry.run] = entry.time
        elif isinstance(entry, RunEntry) and entry.run in began:
            seconds += _seconds(began.pop(entry.run), entry.time)
    return usage, Budget(usage.cost or 0.0, float(usage.context), float(calls), seconds)


def _usage(data: object) -> Usage:
    try:
        return Usage.model_validate(data)
    except ValueError:  # what a file says
        return Usage()


def _seconds(began: str, ended: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())
    except ValueError:
        return 0.0
