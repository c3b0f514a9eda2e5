"""Reconciles and undoes changes."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._changing import rows_text
from ._databases import Databases
from ._errors import SqlMissing


async def reconcile(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look for the effect's record, which is committed with the change in databases of the data folder."""
    databases: Databases = ctx.state
    try:
        happened = await databases.is_marked(ctx, recorded.params["db"], recorded.effect)
    except SqlMissing:
        happened = False
    return None if happened is None else Reconciled(happened)


async def undo(recorded: Recorded, _ctx: OpContext) -> Undo:
    """Plan to revert the change with the inverse that was recorded before the commit."""
    remains = tuple(recorded.note.get("remains", ()))
    if "undo" not in recorded.note:
        return Undo(remains=remains)
    name = recorded.params["db"]
    params = {"db": name, "changes": recorded.note["undo"]}
    step = UndoStep("sql.revert", params, f"revert the change of `{name}` ({rows_text(recorded.note['rows'])})")
    return Undo(steps=(step,), remains=remains)
