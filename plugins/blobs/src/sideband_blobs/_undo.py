"""Reconciles and undoes ops."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep


async def reconcile_put(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Check whether the blob exists."""
    note = recorded.note
    if not note or await ctx.blobs.find(note["sha256"]) is None:
        return Reconciled(happened=False)
    return Reconciled(happened=True, result={"sha256": note["sha256"], "size": note["size"]})


async def reconcile_delete(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Check whether the blob was deleted."""
    note = recorded.note
    if not note or await ctx.blobs.find(note["sha256"]) is not None:
        return Reconciled(happened=False)
    return Reconciled(happened=True, result={"deleted": True})


async def undo_put(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to delete the blob, unless it existed before."""
    note = recorded.note
    if not note or note["there"]:
        return Undo(remains=("nothing was added: the blob existed before",))
    if await ctx.blobs.find(note["sha256"]) is None:
        return Undo(remains=("the blob was already deleted",))
    text = f"delete blob `{note['sha256']}` ({note['size']:,} bytes), even if the same content was stored again since"
    return Undo(steps=(UndoStep("blobs.delete", {"sha256": note["sha256"]}, text),))


async def undo_delete(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  required by the host
    """Report that a deletion cannot be undone."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was deleted: the blob did not exist",))
    return Undo(remains=(f"blob `{note['sha256']}` cannot be restored: store its content again",))
