"""The locks of an open store.

Each attempt to take a lock has a number, which is stored with the lock. If an attempt or a release ends without an
answer, such as when the connection breaks, it may have been made, or may still be made later. Such attempts are given
up: what they have taken or left is released by a task, and only that, not what a later attempt has taken.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count

import anyio
from attrs import define, field

from ._connection import PostgresConnection
from ._holders import Holder

_PAUSE = 0.05


@define(eq=False)
class NumberedLocks:
    """The locks of a holder.

    Args:
        holder: the open store.
        seconds: how long an attempt without an answer may still succeed, in seconds.
    """

    holder: Holder
    _seconds: float
    _numbers: count[int] = field(factory=lambda: count(1), init=False)
    _held: dict[str, int] = field(factory=dict, init=False)
    _given_up: dict[str, dict[int, float]] = field(factory=lambda: defaultdict(dict), init=False)
    _wanted: anyio.Event = field(factory=anyio.Event, init=False)

    def begin(self) -> int:
        """Return the number of a new attempt to take a lock."""
        return next(self._numbers)

    def held(self, name: str) -> int | None:
        """Return the number of the attempt that has taken a lock; ``None`` if this holder does not have it."""
        return self._held.get(name)

    def give_up(self, name: str, attempt: int) -> None:
        """Note that an attempt, or its release, has ended without an answer."""
        if self._held.get(name) == attempt:
            del self._held[name]
        self._given_up[name][attempt] = anyio.current_time() + self._seconds
        self._wanted.set()

    async def take(self, connection: PostgresConnection, name: str, attempt: int, *, grace: float) -> bool:
        """Take a lock, and return whether it was free, or that of a holder without connections for ``grace`` seconds.

        Args:
            connection: a connection.
            name: the name of the lock.
            attempt: the number of the attempt.
            grace: how long a holder without connections keeps its locks, in seconds.
        """
        deadline: float | None = None
        while True:
            async with connection.transaction():
                taken = await connection.execute(
                    "INSERT INTO locks (name, holder, attempt) VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE "
                    "SET attempt = EXCLUDED.attempt WHERE locks.holder = EXCLUDED.holder AND locks.attempt = ANY(%s)",
                    [name, self.holder.id, attempt, [*self._given_up.get(name, ())]],
                )
                if taken.rowcount:
                    self._held[name] = attempt
                    return True
                other = await self.holder.other(connection, name)
                if other is None:
                    continue  # it was released meanwhile
                if other == self.holder.id or not await self.holder.is_gone(connection, other):
                    return False
                if deadline is None:
                    deadline = anyio.current_time() + grace
                if anyio.current_time() >= deadline:
                    await connection.execute("DELETE FROM holders WHERE id = %s", [other])
                    continue
            await anyio.sleep(_PAUSE)

    async def release(self, connection: PostgresConnection, name: str, attempt: int) -> bool:
        """Release a lock, if this attempt has taken it, and return whether it had."""
        deleted = await connection.execute(
            "DELETE FROM locks WHERE name = %s AND holder = %s AND attempt = %s", [name, self.holder.id, attempt]
        )
        if self._held.get(name) == attempt:
            del self._held[name]
        return bool(deleted.rowcount)

    async def wait(self) -> None:
        """Wait until attempts were given up."""
        await self._wanted.wait()

    async def release_given_up(self, connection: PostgresConnection) -> None:
        """Release what attempts without an answer have taken."""
        for name, attempts in list(self._given_up.items()):
            for attempt, ends in list(attempts.items()):
                is_over = anyio.current_time() > ends
                if await self.release(connection, name, attempt) or is_over:
                    attempts.pop(attempt, None)
            if not attempts:
                self._given_up.pop(name, None)
        if not self._given_up:
            self._wanted = anyio.Event()
