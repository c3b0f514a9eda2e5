"""Open stores as holders of locks, and how a store that has lost its locks is cut off.

Each open store is a holder: a row in `holders`. Its locks are rows in `locks`. Each of its connections has a shared
advisory lock on its number, so the server knows whether a holder has any connection at all: another one can then take
the advisory lock alone. To take over the locks of such a holder, its row is deleted while the advisory lock is held
alone. A connection that it opens later waits for the advisory lock, finds that the row is gone, and is closed before it
writes anything. A holder with a connection is never deleted, and a holder that was deleted never writes again.
"""

from __future__ import annotations

from typing import Any, LiteralString

from attrs import frozen

from ._connection import PostgresConnection
from ._errors import PostgresCutOff


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

    async def other(self, connection: PostgresConnection, name: str) -> int | None:
        """Return the number of the holder that has a lock; ``None`` if it is free."""
        row = await _first(connection, "SELECT holder FROM locks WHERE name = %s", name)
        return None if row is None else int(row[0])

    async def leave(self, connection: PostgresConnection) -> None:
        """Release all locks."""
        await connection.execute("DELETE FROM holders WHERE id = %s", [self.id])

    async def is_gone(self, connection: PostgresConnection, holder: int) -> bool:
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
