"""The locks of open stores, and how a store that has lost them is cut off.

Each open store is a holder: a row in `holders`. Its locks are rows in `locks`. Each of its connections has a shared
advisory lock on its number, so the server knows whether a holder has any connection at all: another one can then take
the advisory lock alone. To take over the locks of such a holder, its row is deleted while the advisory lock is held
alone. A connection that it opens later waits for the advisory lock, finds that the row is gone, and is closed before it
writes anything. A holder with a connection is never deleted, and a holder that was deleted never writes again.
"""

from __future__ import annotations

from typing import Any, LiteralString

import anyio
from attrs import frozen

from ._connection import PostgresConnection
from ._errors import PostgresCutOff

_PAUSE = 0.05


@frozen
class Holder:
    """An open store as the holder of locks.

    Attributes:
        namespace: the number that distinguishes the advisory locks of the schema from others.
        id: the number of the holder.
    """

    namespace: int
    id: int

    async def attach(self, connection: PostgresConnection) -> None:
        """Show by this connection that the holder is alive.

        Raises:
            PostgresCutOff: if its locks were taken over.
        """
        await connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", [self.namespace, self.id])
        # Another statement, since one that waits does not see what was deleted meanwhile.
        if await _first(connection, "SELECT FROM holders WHERE id = %s", self.id) is None:
            raise PostgresCutOff

    async def try_lock(self, connection: PostgresConnection, name: str, *, grace: float) -> bool:
        """Take a lock, and return whether it was free, or that of a holder without connections for ``grace`` seconds.

        Args:
            connection: a connection.
            name: the name of the lock.
            grace: how long a holder without connections keeps its locks, in seconds.
        """
        deadline: float | None = None
        while True:
            async with connection.transaction():
                taken = await connection.execute(
                    "INSERT INTO locks (name, holder) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", [name, self.id]
                )
                if taken.rowcount:
                    return True
                row = await _first(connection, "SELECT holder FROM locks WHERE name = %s", name)
                if row is None:
                    continue  # it was released meanwhile
                holder = row[0]
                if holder == self.id or not await self._is_gone(connection, holder):
                    return False
                if deadline is None:
                    deadline = anyio.current_time() + grace
                if anyio.current_time() >= deadline:
                    await connection.execute("DELETE FROM holders WHERE id = %s", [holder])
                    continue
            await anyio.sleep(_PAUSE)

    async def unlock(self, connection: PostgresConnection, name: str) -> None:
        """Release a lock, if this holder has it."""
        await connection.execute("DELETE FROM locks WHERE name = %s AND holder = %s", [name, self.id])

    async def leave(self, connection: PostgresConnection) -> None:
        """Release all locks."""
        await connection.execute("DELETE FROM holders WHERE id = %s", [self.id])

    async def _is_gone(self, connection: PostgresConnection, holder: int) -> bool:
        """Return whether a holder has no connection. It cannot connect before the transaction ends."""
        row = await _first(connection, "SELECT pg_try_advisory_xact_lock(%s, %s)", self.namespace, holder)
        return row is not None and bool(row[0])


async def enter(connection: PostgresConnection, namespace: int) -> Holder:
    """Add a holder, and remove those that left nothing but their row a day ago or earlier."""
    await connection.execute(
        "DELETE FROM holders WHERE opened < now() - interval '1 day' AND pg_try_advisory_xact_lock(%s, id)",
        [namespace],
    )
    row = await _first(connection, "INSERT INTO holders DEFAULT VALUES RETURNING id")
    assert row is not None  # noqa: S101  the statement returns one row
    return Holder(namespace, row[0])


async def _first(connection: PostgresConnection, query: LiteralString, *arguments: object) -> tuple[Any, ...] | None:
    return await (await connection.execute(query, arguments)).fetchone()
