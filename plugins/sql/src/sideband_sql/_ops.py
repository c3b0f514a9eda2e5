"""The ops of the family `sql`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from anyio import from_thread
from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._changing import execute_in, execute_many_in, transaction_in
from ._cursors import Cursor
from ._databases import Databases
from ._exports import write_rows
from ._limits import Taker, check_columns
from ._models import (
    CloseParams,
    ExecuteManyParams,
    ExecuteManyResult,
    ExecuteParams,
    ExecuteResult,
    ExportParams,
    ExportResult,
    FetchParams,
    FetchResult,
    OpenParams,
    OpenResult,
    QueryParams,
    QueryResult,
    RevertParams,
    RevertResult,
    TransactionParams,
    TransactionResult,
)
from ._paths import scope_path
from ._preview import preview
from ._protocols import DatabaseSession
from ._scope import SqlScope
from ._undo import reconcile, undo

_LARGEST_CHANGES = 128 * 1024 * 1024


def _reading(params: QueryParams | OpenParams) -> Iterable[SqlScope]:
    return params.scopes("read")


def _exporting(params: ExportParams) -> Iterable[Scope]:
    return (*params.scopes("read"), BlobScope(mode="write"))


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


@op("sql.open", requires="sql", scope=_reading, level=Level.MONITORED, record=("sql", "db", "attach"))
async def open_(params: OpenParams, ctx: OpContext) -> OpenResult:
    """Begin a query whose rows are read piece by piece, all as they were when it began.

    Args:
        params: as for `sql.query`.
        ctx: the dispatch.

    Returns:
        The cursor for `sql.fetch`. It ends with its last row, with an error, with `sql.close`, or with the call.

    Raises:
        LimitExceeded: too many cursors are open.
        SqlError: as for `sql.query`.

    Example:
        ``{"sql": "SELECT * FROM measurements", "db": "lab.db"}``
    """
    databases: Databases = ctx.state
    databases.cursors.reserve(ctx.domain)
    try:
        session = await databases.open(ctx, params.db, params.attach)
        try:
            taker = await databases.use(ctx, session, lambda: Taker.of(session.select(params.sql, params.params)))
            cursor_id = databases.cursors.add(Cursor(ctx.domain, ctx.call, session, taker))
        except BaseException:
            await databases.close(session)
            raise
    finally:
        databases.cursors.settle(ctx.domain)
    ctx.on_call_end(partial(databases.end_cursor, cursor_id))
    return OpenResult(cursor=cursor_id, columns=list(taker.columns))


@op("sql.fetch", requires="sql", level=Level.MONITORED, idempotent=False, record=("cursor", "max_rows"))
async def fetch(params: FetchParams, ctx: OpContext) -> FetchResult:
    """Read the next rows of a cursor: as many as fit into a result.

    Args:
        params: `cursor` from `sql.open`; `max_rows` lowers the configured limit.
        ctx: the dispatch.

    Returns:
        Rows, and whether there are more.

    Raises:
        SqlCursorMissing: it is not open, or was opened by another call.
        SqlError: as for `sql.query`. The cursor is closed then.

    Example:
        ``{"cursor": "1f0c…", "max_rows": 500}``
    """
    databases: Databases = ctx.state
    config = databases.config
    cursor = databases.cursors.get(params.cursor, ctx)
    limit = min(params.max_rows or config.max_rows, config.max_rows)
    more = False
    try:
        async with cursor.lock:
            # one that waited here may find it closed
            databases.cursors.get(params.cursor, ctx)
            rows, more = await databases.use(
                ctx, cursor.session, lambda: cursor.taker.take(limit, config.max_result_bytes)
            )
    finally:
        if not more:
            await databases.end_cursor(params.cursor)
    return FetchResult(rows=rows, more=more)


@op("sql.close", requires="sql", level=Level.MONITORED, idempotent=True, record=("cursor",))
async def close(params: CloseParams, ctx: OpContext) -> None:
    """Close a cursor before its last row.

    Args:
        params: `cursor` from `sql.open`; one that has ended already is closed.
        ctx: the dispatch.

    Example:
        ``{"cursor": "1f0c…"}``
    """
    databases: Databases = ctx.state
    if databases.cursors.owns(params.cursor, ctx):
        await databases.end_cursor(params.cursor)


@op(
    "sql.export",
    requires="sql",
    scope=_exporting,
    level=Level.MONITORED,
    record=("sql", "db", "attach", "format"),
)
async def export(params: ExportParams, ctx: OpContext) -> ExportResult:
    """Write all rows of a query into a blob.

    Args:
        params: as for `sql.query`; `format` is `jsonl` (one JSON object a line) or `csv`.
        ctx: the dispatch.

    Returns:
        The blob's digest and size, and how many rows it has.

    Raises:
        BlobTooLarge: it would be larger than `max_export_bytes`.
        SqlError: as for `sql.query`.

    Example:
        ``{"sql": "SELECT * FROM measurements", "db": "lab.db", "format": "csv"}``
    """
    databases: Databases = ctx.state
    async with ctx.blobs.create(max_bytes=databases.config.max_export_bytes) as new:

        def work(session: DatabaseSession) -> tuple[int, list[str]]:
            answer = session.select(params.sql, params.params)
            check_columns(answer.columns)
            return write_rows(answer, params.format, lambda piece: from_thread.run(new.write, piece)), list(
                answer.columns
            )

        rows, columns = await databases.read(ctx, params.db, params.attach, work)
        blob = await new.commit()
    return ExportResult(sha256=blob.sha256, size=blob.size, rows=rows, columns=columns)


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
