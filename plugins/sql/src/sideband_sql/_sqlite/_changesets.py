"""Records and reverts the changes of a transaction, using SQLite's session extension."""

from __future__ import annotations

from typing import Any

import apsw
from attrs import define, field

from .._errors import SqlConflict
from .._protocols import Inverse
from ._authorizer import MARKS

_REASONS = {
    apsw.SQLITE_CHANGESET_DATA: "a row was modified since",
    apsw.SQLITE_CHANGESET_NOTFOUND: "a row was deleted since",
    apsw.SQLITE_CHANGESET_CONFLICT: "a row was inserted again",
    apsw.SQLITE_CHANGESET_CONSTRAINT: "it violates a constraint",
    apsw.SQLITE_CHANGESET_FOREIGN_KEY: "other rows reference a row that would be deleted",
}


@define
class Recording:
    """Records which rows of ordinary tables a transaction changes.

    Args:
        limit: the maximum size in bytes; a larger recording is discarded.
    """

    limit: int
    _session: apsw.Session
    _tables: dict[str, int]
    _too_large: bool = field(init=False, default=False)
    _virtual: set[str] = field(init=False, factory=set)

    @classmethod
    def begin(cls, connection: apsw.Connection, limit: int) -> Recording:
        """Start recording."""
        session = apsw.Session(connection, "main")
        # include tables without a primary key
        session.config(apsw.SQLITE_SESSION_OBJCONFIG_ROWID, 1)
        recording = cls(limit, session, _ordinary_tables(connection))
        session.table_filter(recording._is_recorded)
        session.attach()
        return recording

    def check(self) -> None:
        """Discard the recording if it is too large. Called while a statement runs."""
        if not self._too_large and self._session.memory_used > 2 * self.limit:
            self._too_large = True
            self._session.enabled = False

    def inverse(self, *, schema: bool) -> Inverse:
        """Return the inverse of the recorded changes.

        Args:
            schema: whether the transaction changed tables, indices, views or triggers.
        """
        if schema:
            return Inverse(remains=("changes of the schema cannot be undone",))
        if self._virtual:
            names = ", ".join(f"`{name}`" for name in sorted(self._virtual))
            return Inverse(remains=(f"changes of virtual tables cannot be undone ({names})",))
        self.check()
        changes = b"" if self._too_large else self._session.changeset()
        if self._too_large or len(changes) > self.limit:
            return Inverse(remains=(f"the change exceeds `undo_bytes` and cannot be undone ({self.limit:,} bytes)",))
        return Inverse(apsw.Changeset.invert(changes), sum(1 for _ in apsw.Changeset.iter(changes)))

    def _is_recorded(self, table: str) -> bool:
        if table == MARKS:
            return False
        if table not in self._tables:
            self._virtual.add(table)
            return False
        return True


def revert(connection: apsw.Connection, changes: bytes, name: str) -> int:
    """Apply an inverse atomically within the open transaction.

    Returns:
        The number of affected rows.

    Raises:
        SqlConflict: if a row or its table was changed since.
    """
    tables = _ordinary_tables(connection)
    count = 0
    for change in apsw.Changeset.iter(changes):
        if tables.get(change.name) != change.column_count:
            raise SqlConflict(name, change.name, "the table was altered since")
        count += 1
    conflicts: list[tuple[str, str]] = []

    def refuse(reason: int, change: Any) -> int:
        table = "" if reason == apsw.SQLITE_CHANGESET_FOREIGN_KEY else change.name
        conflicts.append((table, _REASONS.get(reason, "it conflicts with the current rows")))
        return apsw.SQLITE_CHANGESET_ABORT

    # the changeset includes the effects of triggers and foreign keys, so these must not run again
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        apsw.Changeset.apply(changes, connection, conflict=refuse, flags=apsw.SQLITE_CHANGESETAPPLY_FKNOACTION)
    except (apsw.AbortError, apsw.ConstraintError):
        raise SqlConflict(name, *conflicts[0]) from None
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
    return count


def _ordinary_tables(connection: apsw.Connection) -> dict[str, int]:
    """Return the tables that support row changes, with the number of their columns in a changeset.

    In a changeset, a table without a primary key has the rowid as an additional column.
    """
    found = connection.execute(
        "SELECT t.name, t.ncol + (SELECT sum(pk) = 0 FROM pragma_table_info(t.name, 'main'))"
        " FROM pragma_table_list AS t WHERE schema = 'main' AND type = 'table'"
    ).fetchall()
    tables = {str(name): int(count) for name, count in found if isinstance(count, int)}
    return {name: count for name, count in tables.items() if name != MARKS and not name.startswith("sqlite_")}
