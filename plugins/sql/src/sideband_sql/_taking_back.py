"""What would happen, whether it did, and how it is taken back: of every op that changes a database."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._changing import execute_in, execute_many_in, transaction_in
from ._databases import Databases
from ._errors import SqlError, SqlMissing
from ._models import ExecuteManyParams, ExecuteParams, TransactionParams
from ._protocols import DatabaseSession

__all__ = ["preview", "reconcile", "undo"]


async def preview(params: ExecuteParams | ExecuteManyParams | TransactionParams, ctx: OpContext) -> str:
    """Make the change in a transaction that is rolled back, and say how many rows it would affect.

    The database is locked for other writers meanwhile, at most as long as for the change itself.
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
        return f"would create the database `{params.db}` and change it"
    except SqlError as error:
        return f"would fail, and change nothing: {error.message}"
    if isinstance(params, TransactionParams):
        each = ", ".join(str(count) for count in counts)
        return f"would change {_rows(sum(counts))} of `{params.db}` in {len(counts)} statements ({each})"
    return f"would change {_rows(sum(counts))} of `{params.db}`"


async def reconcile(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look for the note that is committed with each change, in databases that are the host's own."""
    databases: Databases = ctx.state
    try:
        happened = await databases.is_marked(ctx, recorded.params["db"], recorded.effect)
    except SqlMissing:
        happened = False
    return None if happened is None else Reconciled(happened)


async def undo(recorded: Recorded, _ctx: OpContext) -> Undo:
    """Plan to take the change back with what was noted before it was made."""
    remains = tuple(recorded.note.get("remains", ()))
    if "undo" not in recorded.note:
        return Undo(remains=remains)
    name = recorded.params["db"]
    params = {"db": name, "changes": recorded.note["undo"]}
    step = UndoStep("sql.revert", params, f"take back what was changed in `{name}` ({_rows(recorded.note['rows'])})")
    return Undo(steps=(step,), remains=remains)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
