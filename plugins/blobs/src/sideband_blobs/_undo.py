"""Finds out what became of an op whose end was not seen, and plans how ops are taken back."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep


async def reconcile_put(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look whether it is there: it has the name of its content."""
    note = recorded.note
    if not note or await ctx.blobs.find(note["sha256"]) is None:
        return Reconciled(happened=False)
    return Reconciled(happened=True, result={"sha256": note["sha256"], "size": note["size"]})


async def reconcile_delete(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look whether it is gone."""
    note = recorded.note
    if not note or await ctx.blobs.find(note["sha256"]) is not None:
        return Reconciled(happened=False)
    return Reconciled(happened=True, result={"deleted": True})


async def undo_put(recorded: Recorded, ctx: OpContext) -> Undo:
    """Delete it, unless it was there before."""
    note = recorded.note
    if not note or note["there"]:
        return Undo(remains=("the blob was there before: nothing was added",))
    if await ctx.blobs.find(note["sha256"]) is None:
        return Undo(remains=("the blob is gone already",))
    text = f"delete the blob `{note['sha256']}` ({note['size']:,} bytes), also for those who have put the same since"
    return Undo(steps=(UndoStep("blobs.delete", {"sha256": note["sha256"]}, text),))


async def undo_delete(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as the broker calls it
    """Say that it can't be taken back."""
    note = recorded.note
    if not note:
        return Undo(remains=("there was no such blob: nothing was deleted",))
    return Undo(remains=(f"the blob `{note['sha256']}` is gone: put the same content again",))
