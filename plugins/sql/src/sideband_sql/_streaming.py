"""The ops `sql.open`, `sql.fetch`, `sql.close` and `sql.export`: answers that are larger than one result."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from anyio import CancelScope, from_thread
from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._cursors import Cursor
from ._databases import Databases
from ._exports import write_rows
from ._limits import Taker, check_columns
from ._models import (
    CloseParams,
    ExportParams,
    ExportResult,
    FetchParams,
    FetchResult,
    OpenParams,
    OpenResult,
)
from ._protocols import DatabaseSession

__all__ = ["close", "end_all", "export", "fetch", "open_"]


def _reading(params: OpenParams) -> Iterable[Scope]:
    return params.scopes("read")


def _exporting(params: ExportParams) -> Iterable[Scope]:
    return (*params.scopes("read"), BlobScope(mode="write"))


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
    ctx.on_call_end(partial(_end, databases, cursor_id))
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
            await _end(databases, params.cursor)
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
        await _end(databases, params.cursor)


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


async def end_all(databases: Databases) -> None:
    """Close all cursors that are open."""
    for cursor_id in databases.cursors.ids():
        await _end(databases, cursor_id)


async def _end(databases: Databases, cursor_id: str) -> None:
    cursor = databases.cursors.remove(cursor_id)
    if cursor is None:
        return
    with CancelScope(shield=True):
        cursor.session.stop()
        async with cursor.lock:
            await databases.close(cursor.session)
