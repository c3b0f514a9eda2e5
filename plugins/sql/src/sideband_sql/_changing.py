"""The work of the changing ops inside their transaction. Blocking; runs in a thread."""

from __future__ import annotations

from ._models import (
    ExecuteManyParams,
    ExecuteManyResult,
    ExecuteParams,
    ExecuteResult,
    TransactionParams,
    TransactionResult,
)
from ._protocols import Bindings, DatabaseSession


def execute_in(session: DatabaseSession, *, params: ExecuteParams) -> ExecuteResult:
    """Run one statement."""
    return _execute(session, params.sql, params.params)


def execute_many_in(session: DatabaseSession, *, params: ExecuteManyParams) -> ExecuteManyResult:
    """Run one statement for many rows."""
    return ExecuteManyResult(rows_affected=session.change_many(params.sql, params.rows))


def transaction_in(session: DatabaseSession, *, params: TransactionParams) -> TransactionResult:
    """Run several statements."""
    return TransactionResult(
        results=[_execute(session, statement.sql, statement.params) for statement in params.statements]
    )


def rows_text(count: int) -> str:
    """Return the number of rows with its unit, such as `2 rows`."""
    return "1 row" if count == 1 else f"{count:,} rows"


def _execute(session: DatabaseSession, sql: str, params: Bindings) -> ExecuteResult:
    changed = session.change(sql, params)
    rows = [dict(zip(changed.columns, row, strict=True)) for row in changed.rows]
    return ExecuteResult(rows_affected=changed.affected, last_insert_rowid=changed.rowid, rows=rows)
