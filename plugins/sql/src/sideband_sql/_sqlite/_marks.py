"""Which effects were committed, noted in the database itself: what is in one transaction is there together or not.

Only in databases of the host's own data folder, in one small table that no statement of others may change.
"""

from __future__ import annotations

import apsw

from ._authorizer import MARKS

# a lost outcome is asked for when the host starts again, so that few are ever needed
_KEPT = 1_000


def mark(connection: apsw.Connection, effect: str) -> None:
    """Note an effect in the open transaction, and forget the oldest."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (id INTEGER PRIMARY KEY, effect TEXT NOT NULL UNIQUE)")
    connection.execute(f"INSERT INTO {MARKS} (effect) VALUES (?)", (effect,))  # noqa: S608  the name is ours
    connection.execute(f"DELETE FROM {MARKS} WHERE id <= last_insert_rowid() - {_KEPT}")  # noqa: S608


def is_marked(connection: apsw.Connection, effect: str) -> bool | None:
    """Whether the effect was committed; ``None`` if the note may have been forgotten."""
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (MARKS,)).fetchall()
    if not tables:
        return False
    if connection.execute(f"SELECT 1 FROM {MARKS} WHERE effect = ?", (effect,)).fetchall():  # noqa: S608
        return True
    ((forgotten,),) = connection.execute(f"SELECT min(id) > 1 FROM {MARKS}").fetchall()  # noqa: S608
    return None if forgotten else False
