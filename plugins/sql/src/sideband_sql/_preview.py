"""Previews a change of a database."""

from __future__ import annotations

from sideband.ops import OpContext
from sideband.rendering import quoted

from ._changing import execute_in, execute_many_in, rows_text, transaction_in
from ._databases import Databases
from ._errors import SqlError, SqlMissing
from ._models import ExecuteManyParams, ExecuteParams, TransactionParams
from ._protocols import DatabaseSession


async def preview(params: ExecuteParams | ExecuteManyParams | TransactionParams, ctx: OpContext) -> str:
    """Run the change in a transaction that is rolled back, and describe how many rows it would affect.

    During the preview, the database is locked for other writers, at most as long as for the change itself.
    """

    def work(session: DatabaseSession) -> list[int]:
        match params:
            case ExecuteParams():
                return [execute_in(session, params=params).rows_affected]
            case ExecuteManyParams():
                return [execute_many_in(session, params=params).rows_affected]
            case TransactionParams():
                return [one.rows_affected for one in transaction_in(session, params=params).results]

    databases: Databases = ctx.state
    try:
        counts = await databases.rehearse(ctx, params.db, params.attach, work)
    except SqlMissing:
        return f"would create the database {quoted(params.db)} and change it"
    except SqlError as error:
        return f"would fail without changing anything: {error.message}"
    if isinstance(params, TransactionParams):
        each = ", ".join(str(count) for count in counts)
        return f"would change {rows_text(sum(counts))} in {quoted(params.db)} in {len(counts)} statements ({each})"
    return f"would change {rows_text(sum(counts))} in {quoted(params.db)}"
