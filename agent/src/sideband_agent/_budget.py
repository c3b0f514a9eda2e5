"""What a session may use: money, tokens, tool calls and time at work, divided among the agents that it spawns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from attrs import astuple, define, evolve, field, fields, frozen
from sideband.messages import Usage

from ._errors import BudgetSpent, CostUnknown

_NAMES = {"money": "US dollars", "tokens": "tokens", "calls": "tool calls", "seconds": "seconds"}


@frozen
class Budget:
    """Limits, or amounts. ``None`` is no limit.

    Args:
        money: US dollars.
        tokens: read and written.
        calls: of tools.
        seconds: at work.
    """

    money: float | None = None
    tokens: float | None = None
    calls: float | None = None
    seconds: float | None = None


_NOTHING = Budget(0.0, 0.0, 0.0, 0.0)


@define
class Allowance:
    """How much of a budget is left. What a child uses is used of its parent's too.

    Args:
        limit: what may be used in all.
        parent: whose share this is.
        used: what was used before, when a session is resumed.

    Attributes:
        has_unpriced: whether something was used whose price nobody knows.
    """

    limit: Budget = Budget()
    parent: Allowance | None = None
    used: Budget = _NOTHING
    has_unpriced: bool = field(default=False, init=False)
    _promised: Budget = field(default=_NOTHING, init=False)

    def charge(self, usage: Usage | None = None, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Note what was used. It is noted even beyond the limit: it has happened.

        Time is its own user's only: a parent that waits for a child is at work itself.
        """
        usage = usage or Usage(cost=0)
        amounts = Budget(usage.cost or 0.0, usage.context, calls, seconds)
        allowance: Allowance | None = self
        while allowance is not None:
            allowance.used = _sum(allowance.used, amounts)
            allowance.has_unpriced = allowance.has_unpriced or usage.cost is None
            amounts = evolve(amounts, seconds=0.0)
            allowance = allowance.parent

    def check(self, *parts: str) -> None:
        """Make sure that something is left of each part; of all, if none is named.

        Raises:
            BudgetSpent: of this budget, or of one that it is a share of, nothing is left.
            CostUnknown: money is limited, and a model was asked whose prices nobody knows.
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

    def left(self, part: str) -> float | None:
        """What is neither used nor promised to children; ``None`` for no limit."""
        limit = getattr(self.limit, part)
        return None if limit is None else max(0.0, limit - getattr(self.used, part) - getattr(self._promised, part))

    @contextmanager
    def share(self, fraction: float) -> Iterator[Self]:
        """A part of what is left, promised to a child until the block ends.

        Args:
            fraction: above 0, up to 1.
        """
        if not 0 < fraction <= 1:
            raise ValueError(f"a share is above 0 and up to 1, not {fraction!r}")
        parts = {part: left * fraction if (left := self.left(part)) is not None else None for part in _NAMES}
        promised = Budget(**parts)
        self._promised = _sum(self._promised, promised)
        try:
            yield evolve(self, limit=promised, parent=self, used=_NOTHING)
        finally:
            self._promised = _sum(self._promised, promised, sign=-1)


def _sum(one: Budget, other: Budget, *, sign: int = 1) -> Budget:
    return Budget(*(mine + sign * (theirs or 0) for mine, theirs in zip(astuple(one), astuple(other), strict=True)))


assert [one.name for one in fields(Budget)] == list(_NAMES)  # noqa: S101  the table names every part
