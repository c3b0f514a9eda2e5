"""Cursors: answers that are read piece by piece. Each belongs to the trust domain and the call that opened it."""

from __future__ import annotations

import secrets

import anyio
from attrs import define, field
from sideband.ops import LimitExceeded, OpContext

from ._errors import SqlCursorMissing
from ._limits import Taker
from ._protocols import DatabaseSession


@define(eq=False)
class Cursor:
    """An answer that is being read.

    Args:
        domain, call: whose it is.
        session: open as long as the cursor is.
        taker: the rows that have not been read.
    """

    domain: str
    call: str
    session: DatabaseSession
    taker: Taker
    # one fetch after the other
    lock: anyio.Lock = field(init=False, factory=anyio.Lock)


@define
class Cursors:
    """All open cursors of the host, under ids that can't be guessed.

    Args:
        limit: how many one trust domain may have.
    """

    limit: int
    _open: dict[str, Cursor] = field(factory=dict, init=False, repr=False)
    _opening: dict[str, int] = field(factory=dict, init=False, repr=False)

    def reserve(self, domain: str) -> None:
        """Say that one is about to be opened.

        Raises:
            LimitExceeded: the domain has too many already.
        """
        count = sum(one.domain == domain for one in self._open.values()) + self._opening.get(domain, 0)
        if count >= self.limit:
            raise LimitExceeded("sql_cursors", self.limit, retryable=True)
        self._opening[domain] = self._opening.get(domain, 0) + 1

    def settle(self, domain: str) -> None:
        """It was opened, or it was not."""
        self._opening[domain] -= 1
        if not self._opening[domain]:
            del self._opening[domain]

    def add(self, cursor: Cursor) -> str:
        """Keep a cursor, and return its id."""
        cursor_id = secrets.token_hex(16)
        self._open[cursor_id] = cursor
        return cursor_id

    def get(self, cursor_id: str, ctx: OpContext) -> Cursor:
        """The cursor, if it is open and the caller's.

        Raises:
            SqlCursorMissing: it is not. Whether it is somebody else's is not told.
        """
        if not self.owns(cursor_id, ctx):
            raise SqlCursorMissing
        return self._open[cursor_id]

    def owns(self, cursor_id: str, ctx: OpContext) -> bool:
        """Whether there is such a cursor and it is the caller's."""
        cursor = self._open.get(cursor_id)
        return cursor is not None and (cursor.domain, cursor.call) == (ctx.domain, ctx.call)

    def remove(self, cursor_id: str) -> Cursor | None:
        """Let go of a cursor; who gets it closes it."""
        return self._open.pop(cursor_id, None)

    def ids(self) -> tuple[str, ...]:
        """The ids of those that are open."""
        return tuple(self._open)
