"""Running statements in an open session. Everything here blocks, and raises the family's typed errors."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from ._connection import Session
from ._errors import SqlSyntax, SqlTooLarge, SqlValue

__all__ = ["Bindings", "Rows", "change", "change_many", "select"]

_BYTES_OF_A_NUMBER = 8

Bindings = Mapping[str, Any] | Sequence[Any]


@define
class Rows:
    """What a statement answered.

    Args:
        columns: the names, in order.
        rows: one mapping a row.
        truncated: whether a limit left rows out.
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    truncated: bool = False


def select(session: Session, sql: str, params: Bindings, max_rows: int) -> Rows:
    """Run a statement that answers rows, up to the limits.

    Raises:
        SqlSyntax: it answers none, or two columns have one name.
        SqlTooLarge: not even one row fits.
    """
    with session.statements():
        cursor = session.when_free(lambda: session.connection.execute(sql, params))
        if cursor.description is None:
            raise SqlSyntax("it answers no rows", hint="`sql.query` is for SELECT; `sql.execute` is for changes")
        return _take(cursor, max_rows, session.config.max_result_bytes)


def change(session: Session, sql: str, params: Bindings) -> tuple[int, int | None, list[dict[str, Any]]]:
    """Run one statement within a transaction.

    Returns:
        The rows affected, the last rowid inserted (or ``None``), and the rows of a `RETURNING` clause.
    """
    with session.statements():
        cursor = session.connection.execute(sql, params)
        if cursor.description is None:
            rows: list[dict[str, Any]] = []
        else:
            # all of them: the change is complete, and can be told, only when the last one was fetched
            taken = _take(cursor, session.config.max_rows, session.config.max_result_bytes)
            if taken.truncated:
                raise SqlTooLarge("RETURNING answers more than fits")
            rows = taken.rows
        affected = max(cursor.rowcount, 0)
        inserted = session.policy.inserts and affected > 0
        return affected, cursor.lastrowid if inserted else None, rows


def change_many(session: Session, sql: str, rows: Sequence[Bindings]) -> int:
    """Run one statement for each row within a transaction, and return the rows affected."""
    with session.statements():
        return max(session.connection.executemany(sql, rows).rowcount, 0)


def _take(cursor: sqlite3.Cursor, max_rows: int, max_bytes: int) -> Rows:
    columns = [column[0] for column in cursor.description]
    _refuse_duplicates(columns)
    rows: list[dict[str, Any]] = []
    size = 0
    for values in cursor:
        if len(rows) == max_rows:
            return Rows(columns, rows, truncated=True)
        size += sum(map(_size, values))
        if size > max_bytes:
            if not rows:
                raise SqlTooLarge(f"one row is larger than the {max_bytes:,} bytes of a result")
            return Rows(columns, rows, truncated=True)
        rows.append(dict(zip(columns, values, strict=True)))
    return Rows(columns, rows)


def _refuse_duplicates(columns: list[str]) -> None:
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise SqlSyntax(
            f"several columns are named {', '.join(f'`{name}`' for name in twice)}",
            hint="rows are answered by column name: give each its own with AS",
        )


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise SqlValue("a column holds an infinite number", hint="JSON has none; read it with CAST(column AS TEXT)")
    return _BYTES_OF_A_NUMBER
