"""What changes of secrets would do, whether they happened, and how they can be taken back. Nothing here changes one."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep

from ._backends import Stored
from ._models import NameParams, RekeyParams, RotateParams, SetParams
from ._secrets import Secrets

__all__ = [
    "plan_undo",
    "preview_delete",
    "preview_rekey",
    "preview_rollback",
    "preview_rotate",
    "preview_set",
    "reconcile_change",
    "reconcile_delete",
]


async def preview_set(params: SetParams, ctx: OpContext) -> str:
    """What storing would do."""
    before = await _own(params.name, ctx)
    kind = "text" if isinstance(params.value, str) else "bytes"
    bound = ", ".join(params.origins) or "no origin"
    replaced = "" if before is None else f" in the place of {_described(before)}, which is forgotten"
    return f"would store {kind} as `{params.name}`, bound to {bound}{replaced}"


async def preview_rotate(params: RotateParams, ctx: OpContext) -> str:
    """What a rotation would do."""
    before = await _own(params.name, ctx)
    if before is None:
        return f"would fail: there is no own secret `{params.name}`"
    return f"would give {_described(before)} a new value"


async def preview_rollback(params: NameParams, ctx: OpContext) -> str:
    """What having the value back would do."""
    before = await _own(params.name, ctx)
    if before is None or before.rolled_back() is None:
        return f"would fail: no earlier value of `{params.name}` is kept"
    return f"would give {_described(before)} the value again that it had before; the newer one is forgotten"


async def preview_delete(params: NameParams, ctx: OpContext) -> str:
    """What a deletion would do."""
    before = await _own(params.name, ctx)
    return (
        f"would fail: there is no own secret `{params.name}`"
        if before is None
        else f"would forget {_described(before)}"
    )


async def preview_rekey(params: RekeyParams, ctx: OpContext) -> str:
    """What a new key would do."""
    own = await _secrets(ctx).own_name(ctx)
    return f"would seal the store of secrets (`{own}`) with a new {params.to}; the old key no longer opens it"


async def reconcile_change(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Whether a secret was stored: it says itself which effect stored it."""
    name, version = recorded.params.get("name"), recorded.note.get("version", 0)
    if not isinstance(name, str):
        return None
    found = await _own(name, ctx)
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
    return Reconciled(happened="version" in recorded.note and await _own(name, ctx) is None)


async def plan_undo(recorded: Recorded, ctx: OpContext) -> Undo:
    """How a change of a secret is taken back: as long as nothing else has changed it, and its old value is kept."""
    name = str(recorded.params.get("name"))
    verb = recorded.op.rpartition(".")[2]
    if verb in _GONE:
        return Undo(remains=(_GONE[verb].format(name=name),))
    found = await _own(name, ctx)
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


def _described(stored: Stored) -> str:
    bound = ", ".join(stored.origins) or "no origin"
    return f"`{stored.name}` (bound to {bound}, stored {stored.updated})"


async def _own(name: str, ctx: OpContext) -> Stored | None:
    return await _secrets(ctx).read_own(name, ctx)


def _secrets(ctx: OpContext) -> Secrets:
    secrets: Secrets = ctx.state
    return secrets
