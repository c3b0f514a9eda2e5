"""Reconciles and undoes changes."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._changing import rows_text
from ._databases import Databases
from ._errors import SqlDenied, SqlMissing, SqlReplaced


async def reconcile(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look for the effect's record, which is committed with the change in databases of the data folder."""
    databases: Databases = ctx.state
    try:
        happened = await databases.is_marked(ctx, recorded.params["db"], recorded.effect)
    except SqlMissing:
        happened = False
    return None if happened is None else Reconciled(happened)


async def undo(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to revert the change of the recorded database with the inverse that was recorded before the commit."""
    databases: Databases = ctx.state
    note = recorded.note
    remains = tuple(note.get("remains", ()))
    if "undo" not in note:
        return Undo(remains=remains)
    # a record of an older version does not identify the database
    name, identities = note.get("database", recorded.params["db"]), note.get("recorded", [])
    try:
        await databases.check_recorded(ctx, name, identities)
    except (SqlReplaced, SqlMissing, SqlDenied) as error:
        return Undo(remains=(*remains, error.message))
    params = {"db": name, "changes": note["undo"], "recorded": identities}
    step = UndoStep("sql.revert", params, f"revert the change of `{name}` ({rows_text(note['rows'])})")
    return Undo(steps=(step,), remains=remains)
