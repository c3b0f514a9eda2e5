"""Records committed effects in the database itself, in the same transaction as the change.

Only for databases in the host's data folder, in one small table that statements of users cannot change.
"""

from __future__ import annotations

import apsw

from ._authorizer import MARKS

# unknown outcomes are reconciled when the host starts again, so only recent effects are needed
_MAX_MARKS = 1_000


def mark(connection: apsw.Connection, effect: str) -> None:
    """Record an effect in the open transaction, and delete the oldest records."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (id INTEGER PRIMARY KEY, effect TEXT NOT NULL UNIQUE)")
    connection.execute(f"INSERT INTO {MARKS} (effect) VALUES (?)", (effect,))  # noqa: S608  the name is a constant
    connection.execute(f"DELETE FROM {MARKS} WHERE id <= last_insert_rowid() - {_MAX_MARKS}")  # noqa: S608


def is_marked(connection: apsw.Connection, effect: str) -> bool | None:
    """Return whether the effect was committed, or ``None`` if its record may have been deleted."""
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (MARKS,)).fetchall()
    if not tables:
        return False
    if connection.execute(f"SELECT 1 FROM {MARKS} WHERE effect = ?", (effect,)).fetchall():  # noqa: S608
        return True
    ((pruned,),) = connection.execute(f"SELECT min(id) > 1 FROM {MARKS}").fetchall()  # noqa: S608
    return None if pruned else False
