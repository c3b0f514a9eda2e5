"""What a session may use: money, tokens, tool calls and time at work, divided among the agents that it spawns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from attrs import asdict, define, evolve, field, fields, frozen

from ..messages import Usage
from ._errors import BudgetSpent

__all__ = ["Allowance", "Budget"]

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


@define
class Allowance:
    """How much of a budget is left. What a child uses is used of its parent's too.

    Args:
        limit: what may be used in all.
        parent: whose share this is.
        used: what was used before, when a session is resumed.
    """

    limit: Budget = Budget()
    parent: Allowance | None = None
    used: Budget = Budget(0.0, 0.0, 0.0, 0.0)
    _promised: Budget = field(default=Budget(0.0, 0.0, 0.0, 0.0), init=False)

    def charge(self, usage: Usage | None = None, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Note what was used. It is noted even beyond the limit: it has happened."""
        tokens = usage.context if usage else 0
        cost = (usage.cost or 0.0) if usage else 0.0
        allowance: Allowance | None = self
        while allowance is not None:
            used = allowance.used
            allowance.used = Budget(
                (used.money or 0) + cost,
                (used.tokens or 0) + tokens,
                (used.calls or 0) + calls,
                (used.seconds or 0) + seconds,
            )
            allowance = allowance.parent

    def check(self, *parts: str) -> None:
        """Make sure that something is left of each part; of all, if none is named.

        Raises:
            BudgetSpent: of this budget, or of one that it is a share of, nothing is left.
        """
        allowance: Allowance | None = self
        while allowance is not None:
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
        child = evolve(self, limit=Budget(**parts), parent=self, used=Budget(0.0, 0.0, 0.0, 0.0))
        self._promise(child.limit, 1)
        before = child.limit
        try:
            yield child
        finally:
            self._promise(before, -1)

    def _promise(self, amount: Budget, sign: int) -> None:
        self._promised = Budget(
            **{
                name: (getattr(self._promised, name) or 0) + sign * (value or 0)
                for name, value in asdict(amount).items()
            }
        )


assert [one.name for one in fields(Budget)] == list(_NAMES)  # noqa: S101  the table names every part
