"""Says that a command can't be taken back."""

from __future__ import annotations

from sideband.ops import OpContext, Recorded, Undo


async def undo_run(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  nothing of it helps
    """Say that nothing of it can be taken back."""
    binary = recorded.params.get("binary", "the command")
    return Undo(remains=(f"what `{binary}` did can't be taken back: nobody but the program knows what it has changed",))
