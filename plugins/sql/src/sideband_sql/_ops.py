"""The ops `sql.query`, `sql.execute`, `sql.executemany` and `sql.transaction`."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.ops import Level, OpContext, op

from ._connection import Session
from ._databases import Databases
from ._models import (
    ExecuteManyParams,
    ExecuteManyResult,
    ExecuteParams,
    ExecuteResult,
    QueryParams,
    QueryResult,
    SqlScope,
    TransactionParams,
    TransactionResult,
)
from ._statements import Bindings, change, change_many, select

__all__ = ["execute", "executemany", "query", "transaction"]


def _reading(params: QueryParams) -> Iterable[SqlScope]:
    return params.scopes("read")


def _writing(params: ExecuteParams | ExecuteManyParams | TransactionParams) -> Iterable[SqlScope]:
    return params.scopes("write")


@op("sql.query", requires="sql", scope=_reading, level=Level.MONITORED, record=("sql", "db", "attach", "max_rows"))
async def query(params: QueryParams, ctx: OpContext) -> QueryResult:
    """Read rows. SQLite itself refuses any change: the file is opened read-only.

    Args:
        params: `sql` is one SELECT (or a PRAGMA that describes the schema); `params` fills `:name` from an object or
            `?` from a list; `db` is a logical name or an absolute path; `attach` adds databases under an alias, each
            of which needs its own grant; `max_rows` lowers the configured limit.
        ctx: the dispatch.

    Returns:
        Columns, rows by column name, and whether rows were left out.

    Raises:
        SqlMissing: there is no such database.
        SqlReadonly: the statement would change something.
        SqlError: what else is listed in `sideband_sql`'s errors.

    Example:
        ``{"sql": "SELECT title FROM notes WHERE id = :id", "db": "notes.db", "params": {"id": 7}}``
    """
    databases: Databases = ctx.state
    limit = min(params.max_rows or databases.config.max_rows, databases.config.max_rows)

    def work(session: Session) -> QueryResult:
        found = select(session, params.sql, params.params, limit)
        return QueryResult(columns=found.columns, rows=found.rows, truncated=found.truncated)

    return await databases.read(ctx, params.db, params.attach, work)


@op("sql.execute", requires="sql", scope=_writing, level=Level.CONTROLLED, record=("sql", "db", "attach"))
async def execute(params: ExecuteParams, ctx: OpContext) -> ExecuteResult:
    """Run one statement that changes a database, in a transaction of its own. A missing database is created.

    Args:
        params: `sql`, `db` and `params` as for `sql.query`; attached databases can only be read.
        ctx: the dispatch.

    Returns:
        The rows affected, the last rowid inserted, and what `RETURNING` answers.

    Raises:
        SqlConstraint: the schema refuses the change.
        SqlDenied: ATTACH, a transaction, a PRAGMA that changes SQLite itself, a function that reaches files.
        SqlError: what else is listed in `sideband_sql`'s errors. After any error nothing was changed.

    Example:
        ``{"sql": "INSERT INTO notes (title) VALUES (?)", "db": "notes.db", "params": ["milk"]}``
    """

    def work(session: Session) -> ExecuteResult:
        return _execute(session, params.sql, params.params)

    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, work)


@op("sql.executemany", requires="sql", scope=_writing, level=Level.CONTROLLED, record=("sql", "db", "attach"))
async def executemany(params: ExecuteManyParams, ctx: OpContext) -> ExecuteManyResult:
    """Run one INSERT, UPDATE or DELETE for each of many rows, all or nothing.

    Args:
        params: `rows` holds the parameters of each run, as objects or lists; `sql` and `db` as for `sql.execute`.
        ctx: the dispatch.

    Returns:
        The rows affected over all runs.

    Raises:
        SqlError: as for `sql.execute`. After any error nothing was changed.

    Example:
        ``{"sql": "INSERT INTO notes (title) VALUES (?)", "db": "notes.db", "rows": [["milk"], ["bread"]]}``
    """

    def work(session: Session) -> ExecuteManyResult:
        return ExecuteManyResult(rows_affected=change_many(session, params.sql, params.rows))

    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, work)


@op("sql.transaction", requires="sql", scope=_writing, level=Level.CONTROLLED, record=("db", "attach"))
async def transaction(params: TransactionParams, ctx: OpContext) -> TransactionResult:
    """Run several statements, all or nothing.

    Args:
        params: `statements`, each with `sql` and `params`; `db` as for `sql.execute`.
        ctx: the dispatch.

    Returns:
        The result of each statement, in order.

    Raises:
        SqlError: as for `sql.execute`. After any error nothing was changed.

    Example:
        ``{"db": "bank.db", "statements": [{"sql": "UPDATE a SET n = n - 1"}, {"sql": "UPDATE b SET n = n + 1"}]}``
    """

    def work(session: Session) -> TransactionResult:
        return TransactionResult(
            results=[_execute(session, statement.sql, statement.params) for statement in params.statements]
        )

    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, work)


def _execute(session: Session, sql: str, params: Bindings) -> ExecuteResult:
    affected, rowid, rows = change(session, sql, params)
    return ExecuteResult(rows_affected=affected, last_insert_rowid=rowid, rows=rows)
