"""Reconciles and undoes changes of secrets."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._state import secrets_of


async def reconcile_change(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Determine whether a secret was stored. A stored secret contains the id of its effect."""
    name, version = recorded.params.get("name"), recorded.note.get("version", 0)
    if not isinstance(name, str):
        return None
    found = await secrets_of(ctx).read_own(name, ctx)
    if found is not None and found.effect == recorded.effect:
        return Reconciled(happened=True)
    # the version is recorded before anything is changed
    unchanged = "version" not in recorded.note or (None if found is None else found.version) == version
    return Reconciled(happened=False) if unchanged else None


async def reconcile_delete(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Determine whether a secret was deleted: whether it still exists."""
    name = recorded.params.get("name")
    if not isinstance(name, str):
        return None
    return Reconciled(happened="version" in recorded.note and await secrets_of(ctx).read_own(name, ctx) is None)


async def plan_undo(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to undo a change, provided that the secret was not changed since and its previous value is kept."""
    name = str(recorded.params.get("name"))
    verb = recorded.op.rpartition(".")[2]
    if verb in _IRREVERSIBLE:
        return Undo(remains=(_IRREVERSIBLE[verb].format(name=name),))
    found = await secrets_of(ctx).read_own(name, ctx)
    if found is None or found.effect != recorded.effect:
        return Undo(remains=(f"`{name}` was changed or deleted since",))
    params = {"name": name, "stored_by": recorded.effect}
    if verb == "set" and recorded.note.get("version", 0) is None:
        text = f"delete `{name}`, which did not exist before"
        return Undo(steps=(UndoStep("secrets.delete", params, text),))
    if found.rolled_back() is not None:
        text = f"restore the previous value of `{name}`"
        return Undo(steps=(UndoStep("secrets.rollback", params, text),))
    return Undo(remains=(f"the previous value of `{name}` is not kept",))


_IRREVERSIBLE = {
    "delete": "the deleted value of `{name}` is not kept",
    "rollback": "the newer value of `{name}` is not kept",
    "rekey": "the old key of the store is not kept",
}
