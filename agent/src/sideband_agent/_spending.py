"""Record the usage of a session, store it with the session, and charge it to the budget."""

from __future__ import annotations

from datetime import datetime
from typing import Self

import anyio
from attrs import define, field
from pydantic import JsonValue
from sideband.messages import AssistantMessage, ToolResultMessage, Usage
from sideband.ops import OpError
from sideband.providers import ProviderError

from ._budget import Allowance, Budget
from .sessions import CustomEntry, MessageEntry, RunEntry, Session

_RAN = ("ms", "replayed", "unknown")
"""Metadata keys that a result has only if its tool was run."""


@define(eq=False)
class Spending:
    """The usage of one session and its remaining budget.

    Args:
        session: the session.
        allowance: its budget, or its share of a parent's.
        usage: the usage of its model calls, including children and the plugins' own calls.
    """

    session: Session = field(repr=False)
    allowance: Allowance
    usage: Usage = field(factory=Usage)
    _noted: dict[str, Usage] = field(factory=dict)
    _counted_until: float = field(default=0.0, init=False)

    @classmethod
    def of(cls, session: Session, limit: Budget, share: Allowance | None = None) -> Self:
        """Build the spending of an opened session, including what it used before.

        Args:
            session: the session.
            limit: the budget of the session.
            share: a share of a parent's budget, used instead of ``limit``.
        """
        usage, used, noted = _spent(session)
        allowance = share or Allowance(limit)
        allowance.used = used
        return cls(session, allowance, usage, noted)

    def charge_answer(self, usage: Usage) -> None:
        """Charge the usage of a model call of the conversation."""
        self.usage += usage
        self.allowance.charge(usage)

    async def charge_failure(self, error: OpError) -> Usage:
        """Charge what a failed model call used, as far as the provider reported it. Return that."""
        usage = error.usage if isinstance(error, ProviderError) else None
        if usage is None:
            return Usage()
        await self.charge_side_call(usage, "agent")
        return usage

    def charge_tool_call(self) -> None:
        """Charge a tool call that is about to run.

        Raises:
            BudgetSpent: if no tool calls or no time remain.
        """
        self.allowance.check("calls", "seconds")
        self.allowance.charge(calls=1)

    def start_clock(self) -> None:
        """Start to measure working time."""
        self._counted_until = anyio.current_time()

    def charge_time(self) -> None:
        """Charge the working time since the last charge."""
        now = anyio.current_time()
        self.allowance.charge(seconds=now - self._counted_until)
        self._counted_until = now

    async def charge_side_call(self, usage: Usage, plugin: str, source: str = "") -> None:
        """Charge the usage of a model call outside the conversation, unless it is already noted.

        Args:
            usage: the usage.
            plugin: the plugin that made the call, or for which it was made.
            source: the effect of the call. A call that runs again gets the answer of the same effect from the record.
        """
        if source not in self._noted:
            self.allowance.charge(usage)
            await self.note(usage, plugin, source)

    def charge_earlier(self, source: str, usage: Usage, used: Budget) -> None:
        """Charge what a child has used before its parent was interrupted, unless that is already noted."""
        if source not in self._noted and usage != Usage():
            self.allowance.charge(usage, calls=int(used.calls or 0))

    async def note(self, usage: Usage, plugin: str, source: str = "") -> None:
        """Store usage outside the conversation that has already been charged.

        Args:
            usage: the usage.
            plugin: the plugin that caused it.
            source: the effect or the session that used this, in all. What is noted of it is not noted again.
        """
        data: dict[str, JsonValue] = {}
        if source:
            known = self._noted.get(source)
            self._noted[source], data["source"] = usage, source
            usage = usage if known is None else _beyond(usage, known)
            if known is not None and not usage.context and not usage.cost:
                return
        self.usage += usage
        data |= usage.model_dump(mode="json", exclude_none=True)
        with anyio.CancelScope(shield=True):  # a cancelled caller has used it too, so the budget must include it
            await self.session.append(CustomEntry(plugin=plugin, kind="usage", data=data))


def _spent(session: Session) -> tuple[Usage, Budget, dict[str, Usage]]:
    """Return what a session has used before, on all its branches, and how much of it is noted for which source."""
    usage, calls, seconds = Usage(), 0, 0.0
    noted: dict[str, Usage] = {}
    began: dict[str, str] = {}
    for entry in session.tree.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            usage += entry.message.usage
        elif isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            calls += not entry.message.metadata.keys().isdisjoint(_RAN)
        elif isinstance(entry, CustomEntry) and entry.kind == "usage":
            side = _usage(entry.data)
            usage += side
            source = entry.data.get("source") if isinstance(entry.data, dict) else None
            if isinstance(source, str):
                noted[source] = noted.get(source, Usage()) + side
        elif isinstance(entry, RunEntry) and entry.status == "started":
            began[entry.run] = entry.time
        elif isinstance(entry, RunEntry) and entry.run in began:
            seconds += _seconds(began.pop(entry.run), entry.time)
    return usage, Budget(usage.cost or 0.0, float(usage.context), float(calls), seconds), noted


def _beyond(usage: Usage, known: Usage) -> Usage:
    """Return the part of some usage that is not known yet."""
    cost = None if usage.cost is None else max(0.0, usage.cost - (known.cost or 0.0))
    counts = usage.model_dump(exclude={"cost"})
    return Usage(**{name: max(0, count - getattr(known, name)) for name, count in counts.items()}, cost=cost)


def _usage(data: JsonValue) -> Usage:
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name != "source"}
    try:
        return Usage.model_validate(data)
    except ValueError:  # a file may contain anything
        return Usage()


def _seconds(began: str, ended: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())
    except ValueError:
        return 0.0
