"""Budgets of sessions: money, tokens, tool calls and working time, shared with child agents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from attrs import define, evolve, field, fields, frozen
from sideband.messages import Usage

from ._errors import BudgetSpent, CostUnknown

_NAMES = {"money": "US dollars", "tokens": "tokens", "calls": "tool calls", "seconds": "seconds"}


@frozen
class Budget:
    """Limits, or amounts used. ``None`` means no limit.

    Args:
        money: US dollars.
        tokens: input and output tokens.
        calls: tool calls.
        seconds: working time.
    """

    money: float | None = None
    tokens: float | None = None
    calls: float | None = None
    seconds: float | None = None


_NOTHING = Budget(0.0, 0.0, 0.0, 0.0)
_FREE = Usage(cost=0)


@define
class Allowance:
    """The remainder of a budget. Usage of a child is also charged to its parent.

    Args:
        limit: the limits in total.
        parent: the allowance that this one is a share of.
        used: what was used before a session was resumed.

    Attributes:
        has_unpriced: whether a model with unknown prices was used.
    """

    limit: Budget = Budget()
    parent: Allowance | None = None
    used: Budget = _NOTHING
    has_unpriced: bool = field(default=False, init=False)
    _reserved: Budget = field(default=_NOTHING, init=False)

    def charge(self, usage: Usage | None = None, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Add to the amounts used, even beyond the limit.

        Time is charged to this allowance only: a parent that waits for a child measures its own time.
        """
        usage = usage or _FREE
        self.used = _sum(self.used, Budget(usage.cost or 0.0, usage.context, calls, seconds))
        self.has_unpriced = self.has_unpriced or usage.cost is None
        if self.parent is not None:
            self.parent.charge(usage, calls=calls)

    def check(self, *parts: str) -> None:
        """Check that some of each part remains; of all parts if none is named.

        Raises:
            BudgetSpent: if a part of this budget or of a parent's is used up.
            CostUnknown: if money is limited and a model with unknown prices was used.
        """
        allowance: Allowance | None = self
        while allowance is not None:
            if allowance.limit.money is not None and allowance.has_unpriced and "money" in (parts or _NAMES):
                raise CostUnknown(allowance.limit.money)
            for part in parts or _NAMES:
                limit = getattr(allowance.limit, part)
                used = getattr(allowance.used, part)
                if limit is not None and used >= limit:
                    raise BudgetSpent(_NAMES[part], limit, used)
            allowance = allowance.parent

    def overruns(self) -> dict[str, tuple[float, float]]:
        """Return the limit and the amount used of each part of which more was used than its limit.

        What a call costs is known only after it: the last one before the limit may exceed it.

        Example:
            >>> allowance = Allowance(Budget(money=0.01))
            >>> allowance.charge(Usage(input=900, cost=0.04))
            >>> allowance.overruns()
            {'money': (0.01, 0.04)}
        """
        limits = {part: getattr(self.limit, part) for part in _NAMES}
        used = {part: getattr(self.used, part) for part in _NAMES}
        return {part: (limit, used[part]) for part, limit in limits.items() if limit is not None and used[part] > limit}

    def left(self, part: str) -> float | None:
        """Return the remaining budget not reserved for child agents, or ``None`` if unlimited."""
        limit = getattr(self.limit, part)
        return None if limit is None else max(0.0, limit - getattr(self.used, part) - getattr(self._reserved, part))

    @contextmanager
    def share(self, fraction: float) -> Iterator[Self]:
        """Reserve a fraction of the remaining budget for a child until the block ends.

        Args:
            fraction: greater than 0 and at most 1.
        """
        if not 0 < fraction <= 1:
            raise ValueError(f"share must be greater than 0 and at most 1, got {fraction!r}")
        parts = {part: left * fraction if (left := self.left(part)) is not None else None for part in _NAMES}
        reserved = Budget(**parts)
        self._reserved = _sum(self._reserved, reserved)
        try:
            yield evolve(self, limit=reserved, parent=self, used=_NOTHING)
        finally:
            self._reserved = _sum(self._reserved, reserved, sign=-1)


def _sum(one: Budget, other: Budget, *, sign: int = 1) -> Budget:
    return Budget(*[getattr(one, part) + sign * (getattr(other, part) or 0) for part in _NAMES])


assert [one.name for one in fields(Budget)] == list(_NAMES)  # noqa: S101  every field has a name
