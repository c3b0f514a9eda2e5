"""Cursors: results that are read in batches. A cursor belongs to the trust domain and the call that opened it."""

from __future__ import annotations

import secrets

import anyio
from attrs import define, field
from sideband.ops import LimitExceeded, OpContext

from ._errors import SqlCursorMissing
from ._limits import RowReader
from ._protocols import DatabaseSession


@define(eq=False)
class Cursor:
    """A result that is being read.

    Args:
        domain, call: the owner.
        session: open for the lifetime of the cursor.
        reader: the rows that have not been read yet.
    """

    domain: str
    call: str
    session: DatabaseSession
    reader: RowReader
    # serializes fetches
    lock: anyio.Lock = field(init=False, factory=anyio.Lock)


@define
class Cursors:
    """All open cursors of the host, by unguessable id.

    Args:
        limit: the maximum number of cursors of one trust domain.
    """

    limit: int
    _open: dict[str, Cursor] = field(factory=dict, init=False, repr=False)
    _opening: dict[str, int] = field(factory=dict, init=False, repr=False)

    def reserve(self, domain: str) -> None:
        """Reserve a cursor that is about to be opened.

        Raises:
            LimitExceeded: if the domain has reached its limit.
        """
        count = sum(one.domain == domain for one in self._open.values()) + self._opening.get(domain, 0)
        if count >= self.limit:
            raise LimitExceeded("sql_cursors", self.limit, retryable=True)
        self._opening[domain] = self._opening.get(domain, 0) + 1

    def release(self, domain: str) -> None:
        """Release a reservation, whether or not the cursor was opened."""
        self._opening[domain] -= 1
        if not self._opening[domain]:
            del self._opening[domain]

    def add(self, cursor: Cursor) -> str:
        """Add a cursor and return its id."""
        cursor_id = secrets.token_hex(16)
        self._open[cursor_id] = cursor
        return cursor_id

    def get(self, cursor_id: str, ctx: OpContext) -> Cursor:
        """Return a cursor of the caller.

        Raises:
            SqlCursorMissing: if it is not open or belongs to another caller; the error does not reveal which.
        """
        if not self.owns(cursor_id, ctx):
            raise SqlCursorMissing
        return self._open[cursor_id]

    def owns(self, cursor_id: str, ctx: OpContext) -> bool:
        """Return whether the cursor is open and belongs to the caller."""
        cursor = self._open.get(cursor_id)
        return cursor is not None and (cursor.domain, cursor.call) == (ctx.domain, ctx.call)

    def remove(self, cursor_id: str) -> Cursor | None:
        """Remove a cursor and return it. The caller must close it."""
        return self._open.pop(cursor_id, None)

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all open cursors."""
        return tuple(self._open)
