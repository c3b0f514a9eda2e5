"""What a transaction changed, kept by SQLite's own session extension, and taken back with it."""

from __future__ import annotations

from typing import Any

import apsw
from attrs import define, field

from .._errors import SqlConflict
from .._protocols import Inverse
from ._authorizer import MARKS

_REASONS = {
    apsw.SQLITE_CHANGESET_DATA: "a row was changed since",
    apsw.SQLITE_CHANGESET_NOTFOUND: "a row is gone",
    apsw.SQLITE_CHANGESET_CONFLICT: "a row is there again",
    apsw.SQLITE_CHANGESET_CONSTRAINT: "a constraint refuses it",
    apsw.SQLITE_CHANGESET_FOREIGN_KEY: "other rows refer to what would go",
}


@define
class Recording:
    """Notices the rows of ordinary tables that a transaction changes.

    Args:
        limit: how many bytes it keeps at most; then it lets go of all of it.
    """

    limit: int
    _session: apsw.Session
    _tables: dict[str, int]
    _too_large: bool = field(init=False, default=False)
    _elsewhere: set[str] = field(init=False, factory=set)

    @classmethod
    def begin(cls, connection: apsw.Connection, limit: int) -> Recording:
        """Begin to notice."""
        session = apsw.Session(connection, "main")
        # tables without a primary key as well
        session.config(apsw.SQLITE_SESSION_OBJCONFIG_ROWID, 1)
        recording = cls(limit, session, _ordinary_tables(connection))
        session.table_filter(recording._is_wanted)
        session.attach()
        return recording

    def check(self) -> None:
        """Let go if it is too much. Called while a statement runs."""
        if not self._too_large and self._session.memory_used > 2 * self.limit:
            self._too_large = True
            self._session.enabled = False

    def inverse(self, *, schema: bool) -> Inverse:
        """What takes it back.

        Args:
            schema: whether the transaction changed tables, indices, views or triggers.
        """
        if schema:
            return Inverse(remains=("the schema was changed, which can't be taken back",))
        if self._elsewhere:
            names = ", ".join(f"`{name}`" for name in sorted(self._elsewhere))
            return Inverse(remains=(f"what belongs to virtual tables can't be taken back ({names})",))
        self.check()
        changes = b"" if self._too_large else self._session.changeset()
        if self._too_large or len(changes) > self.limit:
            return Inverse(remains=(f"the change is larger than what is kept to take it back ({self.limit:,} bytes)",))
        return Inverse(apsw.Changeset.invert(changes), sum(1 for _ in apsw.Changeset.iter(changes)))

    def _is_wanted(self, table: str) -> bool:
        if table == MARKS:
            return False
        if table not in self._tables:
            self._elsewhere.add(table)
            return False
        return True


def revert(connection: apsw.Connection, changes: bytes, name: str) -> int:
    """Apply an inverse, all of it, within the open transaction.

    Returns:
        how many rows it affected.

    Raises:
        SqlConflict: a row is not as the change left it, or its table isn't.
    """
    tables = _ordinary_tables(connection)
    count = 0
    for change in apsw.Changeset.iter(changes):
        if tables.get(change.name) != change.column_count:
            raise SqlConflict(name, change.name, "the table is not what it was")
        count += 1
    conflicts: list[tuple[str, str]] = []

    def refuse(reason: int, change: Any) -> int:
        table = "" if reason == apsw.SQLITE_CHANGESET_FOREIGN_KEY else change.name
        conflicts.append((table, _REASONS.get(reason, "it does not fit")))
        return apsw.SQLITE_CHANGESET_ABORT

    # what triggers and foreign keys did was noticed too, and is taken back as rows: they must not do it again
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        apsw.Changeset.apply(changes, connection, conflict=refuse, flags=apsw.SQLITE_CHANGESETAPPLY_FKNOACTION)
    except (apsw.AbortError, apsw.ConstraintError):
        raise SqlConflict(name, *conflicts[0]) from None
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
    return count


def _ordinary_tables(connection: apsw.Connection) -> dict[str, int]:
    """The tables that statements may change row by row, with the number of their columns in a changeset.

    A table without a primary key has one more there, its rowid.
    """
    found = connection.execute(
        "SELECT t.name, t.ncol + (SELECT sum(pk) = 0 FROM pragma_table_info(t.name, 'main'))"
        " FROM pragma_table_list AS t WHERE schema = 'main' AND type = 'table'"
    ).fetchall()
    tables = {str(name): int(count) for name, count in found if isinstance(count, int)}
    return {name: count for name, count in tables.items() if name != MARKS and not name.startswith("sqlite_")}
