"""The undo plan of `shell.run`, which is always empty."""

from __future__ import annotations

from sideband.ops import OpContext, Recorded, Undo


async def undo_run(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  the signature is fixed
    """Return a plan without steps."""
    binary = recorded.params.get("binary", "the program")
    return Undo(remains=(f"the changes made by `{binary}` cannot be undone, because they are not recorded",))
