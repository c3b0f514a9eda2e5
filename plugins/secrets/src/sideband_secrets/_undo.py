"""Finds out what became of a change whose end was not seen, and plans how changes are taken back."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._state import secrets_of


async def reconcile_change(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Whether a secret was stored: it says itself which effect stored it."""
    name, version = recorded.params.get("name"), recorded.note.get("version", 0)
    if not isinstance(name, str):
        return None
    found = await secrets_of(ctx).read_own(name, ctx)
    if found is not None and found.effect == recorded.effect:
        return Reconciled(happened=True)
    # a note is written before anything is changed
    unchanged = "version" not in recorded.note or (None if found is None else found.version) == version
    return Reconciled(happened=False) if unchanged else None


async def reconcile_delete(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Whether a secret was removed: it is there or it is not."""
    name = recorded.params.get("name")
    if not isinstance(name, str):
        return None
    return Reconciled(happened="version" in recorded.note and await secrets_of(ctx).read_own(name, ctx) is None)


async def plan_undo(recorded: Recorded, ctx: OpContext) -> Undo:
    """How a change of a secret is taken back: as long as nothing else has changed it, and its old value is kept."""
    name = str(recorded.params.get("name"))
    verb = recorded.op.rpartition(".")[2]
    if verb in _GONE:
        return Undo(remains=(_GONE[verb].format(name=name),))
    found = await secrets_of(ctx).read_own(name, ctx)
    if found is None or found.effect != recorded.effect:
        return Undo(remains=(f"`{name}` was changed again since, or deleted",))
    if verb == "set" and recorded.note.get("version", 0) is None:
        text = f"forget `{name}`, which was not there before"
        return Undo(steps=(UndoStep("secrets.delete", {"name": name}, text),))
    if found.rolled_back() is not None:
        text = f"give `{name}` the value again that it had before"
        return Undo(steps=(UndoStep("secrets.rollback", {"name": name}, text),))
    return Undo(remains=(f"the value that `{name}` had before is not kept",))


_GONE = {
    "delete": "the value of `{name}` was not kept",
    "rollback": "the newer value of `{name}` was not kept",
    "rekey": "the old key of the store was not kept",
}
