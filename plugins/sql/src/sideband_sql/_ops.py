"""The ops `sql.query`, `sql.execute`, `sql.executemany`, `sql.transaction` and `sql.revert`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._changing import execute_in, execute_many_in, transaction_in
from ._databases import Databases
from ._limits import Taker
from ._models import (
    ExecuteManyParams,
    ExecuteManyResult,
    ExecuteParams,
    ExecuteResult,
    QueryParams,
    QueryResult,
    RevertParams,
    RevertResult,
    SqlScope,
    TransactionParams,
    TransactionResult,
)
from ._paths import scope_path
from ._protocols import DatabaseSession
from ._taking_back import preview, reconcile, undo

__all__ = ["execute", "executemany", "query", "revert", "transaction"]

_LARGEST_CHANGES = 128 * 1024 * 1024


def _reading(params: QueryParams) -> Iterable[SqlScope]:
    return params.scopes("read")


def _reverting(params: RevertParams) -> Iterable[Scope]:
    return SqlScope(path=scope_path(params.db), mode="write"), BlobScope(mode="read")


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

    def work(session: DatabaseSession) -> QueryResult:
        taker = Taker.of(session.select(params.sql, params.params))
        rows, more = taker.take(limit, databases.config.max_result_bytes)
        return QueryResult(columns=list(taker.columns), rows=rows, truncated=more)

    return await databases.read(ctx, params.db, params.attach, work)


@op(
    "sql.execute",
    requires="sql",
    scope=_writing,
    level=Level.CONTROLLED,
    record=("sql", "db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
)
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
    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, partial(execute_in, params=params))


@op(
    "sql.executemany",
    requires="sql",
    scope=_writing,
    level=Level.CONTROLLED,
    record=("sql", "db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
)
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
    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, partial(execute_many_in, params=params))


@op(
    "sql.transaction",
    requires="sql",
    scope=_writing,
    level=Level.CONTROLLED,
    record=("db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
)
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
    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, partial(transaction_in, params=params))


@op(
    "sql.revert",
    requires="sql",
    scope=_reverting,
    level=Level.CONTROLLED,
    record=("db", "changes"),
    reconcile=reconcile,
    undo=undo,
)
async def revert(params: RevertParams, ctx: OpContext) -> RevertResult:
    """Take back a change, all of it, if the rows it left are still as it left them. This is how `undo` does it.

    Args:
        params: `changes` is the blob that was noted with the change; `db` as for `sql.execute`.
        ctx: the dispatch.

    Returns:
        The rows affected.

    Raises:
        SqlConflict: a row was changed since, or its table.
        BlobMissing: what would take it back is gone.
        SqlError: as for `sql.execute`. After any error nothing was changed.

    Example:
        ``{"db": "notes.db", "changes": "9f86d0…"}``
    """
    databases: Databases = ctx.state
    # an inverse is about as large as the change
    changes = await ctx.blobs.read(params.changes, max_bytes=_LARGEST_CHANGES)

    def work(session: DatabaseSession) -> RevertResult:
        return RevertResult(rows_affected=session.revert(changes))

    return await databases.write(ctx, params.db, {}, work)
