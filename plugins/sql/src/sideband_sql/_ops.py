"""The ops of the family `sql`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._changing import execute_in, execute_many_in, transaction_in
from ._cursors import Cursor
from ._databases import Databases, run_in_loop
from ._exports import write_rows
from ._limits import RowReader, check_columns
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

_READ = {"mode": ("read",)}
_WRITE = {"mode": ("write",)}
_MAX_CHANGES_BYTES = 128 * 1024 * 1024


def _reading(params: QueryParams | OpenParams) -> Iterable[SqlScope]:
    return params.scopes("read")


def _exporting(params: ExportParams) -> Iterable[Scope]:
    return (*params.scopes("read"), BlobScope(mode="write"))


def _reverting(params: RevertParams) -> Iterable[Scope]:
    return SqlScope(path=scope_path(params.db), mode="write"), BlobScope(mode="read")


def _writing(params: ExecuteParams | ExecuteManyParams | TransactionParams) -> Iterable[SqlScope]:
    return params.scopes("write")


@op(
    "sql.query",
    requires="sql",
    scope=_reading,
    level=Level.MONITORED,
    needs=_READ,
    record=("sql", "db", "attach", "max_rows"),
    egress=False,
)
async def query(params: QueryParams, ctx: OpContext) -> QueryResult:
    """Read rows. SQLite itself rejects any change: the file is opened read-only.

    Args:
        params: `sql` is one SELECT (or a PRAGMA that describes the schema); `params` binds `:name` from an object or
            `?` from a list; `db` is a logical name or an absolute path; `attach` adds databases by alias, each
            of which needs its own grant; `max_rows` lowers the configured limit.
        ctx: the op's context.

    Returns:
        The columns, the rows by column name, and whether rows were left out.

    Raises:
        SqlMissing: if the database does not exist.
        SqlReadonly: if the statement would change the database.
        SqlError: for the other errors of this family.

    Example:
        ``{"sql": "SELECT title FROM notes WHERE id = :id", "db": "notes.db", "params": {"id": 7}}``
    """
    databases: Databases = ctx.state
    limit = min(params.max_rows or databases.config.max_rows, databases.config.max_rows)

    def work(session: DatabaseSession) -> QueryResult:
        reader = RowReader.of(session.select(params.sql, params.params))
        rows, more = reader.take(limit, databases.config.max_result_bytes)
        return QueryResult(columns=list(reader.columns), rows=rows, truncated=more)

    return await databases.read(ctx, params.db, params.attach, work)


@op(
    "sql.open",
    requires="sql",
    scope=_reading,
    level=Level.MONITORED,
    needs=_READ,
    record=("sql", "db", "attach"),
    egress=False,
)
async def open_(params: OpenParams, ctx: OpContext) -> OpenResult:
    """Open a cursor to read the rows of a query in batches, all as of the time it was opened.

    Args:
        params: as for `sql.query`.
        ctx: the op's context.

    Returns:
        The cursor for `sql.fetch`. It ends after its last row, on an error, at `sql.close`, or with the call.

    Raises:
        LimitExceeded: if too many cursors are open.
        SqlError: as for `sql.query`.

    Example:
        ``{"sql": "SELECT * FROM measurements", "db": "lab.db"}``
    """
    databases: Databases = ctx.state
    databases.cursors.reserve(ctx.domain)
    try:
        session = await databases.open(ctx, params.db, params.attach)
        try:
            reader = await databases.use(ctx, session, lambda: RowReader.of(session.select(params.sql, params.params)))
            cursor_id = databases.cursors.add(Cursor(ctx.domain, ctx.call, session, reader))
        except BaseException:
            await databases.close(session)
            raise
    finally:
        databases.cursors.release(ctx.domain)
    ctx.on_call_end(partial(databases.end_cursor, cursor_id))
    return OpenResult(cursor=cursor_id, columns=list(reader.columns))


@op("sql.fetch", requires="sql", level=Level.MONITORED, idempotent=False, record=("cursor", "max_rows"), egress=False)
async def fetch(params: FetchParams, ctx: OpContext) -> FetchResult:
    """Read the next rows of a cursor, as many as fit into a result.

    Args:
        params: `cursor` from `sql.open`; `max_rows` lowers the configured limit.
        ctx: the op's context.

    Returns:
        The rows, and whether there are more.

    Raises:
        SqlCursorMissing: if the cursor is not open, or was opened by another call.
        SqlError: as for `sql.query`. The cursor is then closed.

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
            # the cursor may have been closed while this fetch waited for the lock
            databases.cursors.get(params.cursor, ctx)
            rows, more = await databases.use(
                ctx, cursor.session, lambda: cursor.reader.take(limit, config.max_result_bytes)
            )
    finally:
        if not more:
            await databases.end_cursor(params.cursor)
    return FetchResult(rows=rows, more=more)


@op("sql.close", requires="sql", level=Level.MONITORED, idempotent=True, record=("cursor",), egress=False)
async def close(params: CloseParams, ctx: OpContext) -> None:
    """Close a cursor before its last row.

    Args:
        params: `cursor` from `sql.open`; a cursor that has already ended is ignored.
        ctx: the op's context.

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
    needs=_READ,
    record=("sql", "db", "attach", "format"),
    egress=False,
)
async def export(params: ExportParams, ctx: OpContext) -> ExportResult:
    """Write all rows of a query to a blob.

    Args:
        params: as for `sql.query`; `format` is `jsonl` (one JSON object per line) or `csv`.
        ctx: the op's context.

    Returns:
        The blob's digest and size, and its number of rows.

    Raises:
        BlobTooLarge: if the export exceeds `max_export_bytes`.
        SqlError: as for `sql.query`.

    Example:
        ``{"sql": "SELECT * FROM measurements", "db": "lab.db", "format": "csv"}``
    """
    databases: Databases = ctx.state
    async with ctx.blobs.create(max_bytes=databases.config.max_export_bytes) as new:

        def work(session: DatabaseSession) -> tuple[int, list[str]]:
            answer = session.select(params.sql, params.params)
            check_columns(answer.columns)
            return write_rows(answer, params.format, lambda chunk: run_in_loop(new.write, chunk)), list(answer.columns)

        rows, columns = await databases.read(ctx, params.db, params.attach, work)
        blob = await new.commit()
    return ExportResult(sha256=blob.sha256, size=blob.size, rows=rows, columns=columns)


@op(
    "sql.execute",
    requires="sql",
    scope=_writing,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("sql", "db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
    egress=False,
)
async def execute(params: ExecuteParams, ctx: OpContext) -> ExecuteResult:
    """Run one statement that changes a database, in its own transaction. A missing database is created.

    Args:
        params: `sql`, `db` and `params` as for `sql.query`; attached databases are read-only.
        ctx: the op's context.

    Returns:
        The number of affected rows, the last inserted rowid, and the rows of `RETURNING`.

    Raises:
        SqlConstraint: if the change violates a constraint.
        SqlDenied: for ATTACH, transaction control, a PRAGMA that changes SQLite itself, or a function that accesses
            files.
        SqlError: for the other errors of this family. After any error, nothing was changed.

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
    needs=_WRITE,
    record=("sql", "db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
    egress=False,
)
async def executemany(params: ExecuteManyParams, ctx: OpContext) -> ExecuteManyResult:
    """Run one INSERT, UPDATE or DELETE for each of many rows, atomically.

    Args:
        params: `rows` holds the parameters of each run, as objects or lists; `sql` and `db` as for `sql.execute`.
        ctx: the op's context.

    Returns:
        The number of affected rows over all runs.

    Raises:
        SqlError: as for `sql.execute`. After any error, nothing was changed.

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
    needs=_WRITE,
    record=("db", "attach"),
    preview=preview,
    reconcile=reconcile,
    undo=undo,
    egress=False,
)
async def transaction(params: TransactionParams, ctx: OpContext) -> TransactionResult:
    """Run several statements atomically.

    Args:
        params: `statements`, each with `sql` and `params`; `db` as for `sql.execute`.
        ctx: the op's context.

    Returns:
        The result of each statement, in order.

    Raises:
        SqlError: as for `sql.execute`. After any error, nothing was changed.

    Example:
        ``{"db": "bank.db", "statements": [{"sql": "UPDATE a SET n = n - 1"}, {"sql": "UPDATE b SET n = n + 1"}]}``
    """
    databases: Databases = ctx.state
    return await databases.write(ctx, params.db, params.attach, partial(transaction_in, params=params))


@op(
    "sql.revert",
    requires="sql",
    internal=True,
    scope=_reverting,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("db", "changes"),
    reconcile=reconcile,
    undo=undo,
    egress=False,
)
async def revert(params: RevertParams, ctx: OpContext) -> RevertResult:
    """Revert a change atomically, provided that its rows were not modified since. `undo` uses this op.

    Args:
        params: `changes` is the digest of the blob that was recorded with the change; `db` as for `sql.execute`;
            `recorded` identifies the database, which must be the same.
        ctx: the op's context.

    Returns:
        The number of affected rows.

    Raises:
        SqlConflict: if a row or its table was changed since.
        SqlReplaced: if the path leads to another database.
        BlobMissing: if the recorded blob no longer exists.
        SqlError: as for `sql.execute`. After any error, nothing was changed.

    Example:
        ``{"db": "notes.db", "changes": "9f86d0…"}``
    """
    databases: Databases = ctx.state
    # an inverse is about as large as the change
    changes = await ctx.blobs.read(params.changes, max_bytes=_MAX_CHANGES_BYTES)

    def work(session: DatabaseSession) -> RevertResult:
        return RevertResult(rows_affected=session.revert(changes))

    return await databases.write(ctx, params.db, {}, work, recorded=params.recorded)
