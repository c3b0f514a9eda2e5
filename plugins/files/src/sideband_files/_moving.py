"""The op `files.move`, and how it is taken back."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.ops import Level, OpContext, Reconciled, Recorded, Scope, Undo, UndoStep, op
from sideband_confined_files import FileChanged

from ._changes import look_first
from ._models import Moved, MoveParams
from ._places import locate
from ._preview import preview_move
from ._state import Files
from ._taking_back import digest_now, put_back, was_not_kept

__all__ = ["move"]


def _moving(params: MoveParams) -> Iterable[Scope]:
    source = locate(params.path)
    # what is moved can be read at the target
    yield source.scope("read")
    yield source.scope("write")
    yield locate(params.target).scope("write")


async def reconcile_move(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look where the file is now."""
    note = recorded.note
    if not note:
        return Reconciled(happened=False)
    here, there = await digest_now(ctx, note["path"]), await digest_now(ctx, note["target"])
    if here is None and there == note["sha256"]:
        return Reconciled(happened=True, result=note["answer"])
    if here == note["sha256"] and there == (note["before"] or {}).get("sha256"):
        return Reconciled(happened=False)
    return None


async def undo_move(recorded: Recorded, ctx: OpContext) -> Undo:
    """Move it back, and put back what it has replaced."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was moved",))
    path, target, before = note["path"], note["target"], note["before"]
    if await digest_now(ctx, target) != note["sha256"]:
        return Undo(remains=(f"`{target}` is not what was moved there: it was changed or deleted since",))
    if await digest_now(ctx, path) is not None:
        return Undo(remains=(f"there is another file at `{path}` by now",))
    back = {"path": target, "target": path, "expected": note["sha256"]}
    step = UndoStep("files.move", back, f"move `{target}` back to `{path}`")
    if before is None:
        return Undo(steps=(step,))
    if not before["kept"]:
        return Undo(steps=(step,), remains=(was_not_kept(target, before),))
    return Undo(steps=(step, put_back(target, before, expected=None)))


@op(
    "files.move",
    requires="files",
    scope=_moving,
    level=Level.CONTROLLED,
    record=("path", "target", "overwrite", "expected"),
    preview=preview_move,
    reconcile=reconcile_move,
    undo=undo_move,
)
async def move(params: MoveParams, ctx: OpContext) -> Moved:
    """Give a file another path, on the same disk. Folders that are missing are made.

    Args:
        params: `path` is the file, `target` its new path; `overwrite` lets it replace a file, and `expected` is the
            SHA-256 that the file must have.
        ctx: the dispatch.

    Returns:
        Both paths, size and digest.

    Raises:
        FileMissing: there is nothing to move.
        FileTaken: there is a file at the target, and it must not be replaced.
        FileChanged: it is not what was expected.
        FileRefused: one of them is no ordinary file, or they are on different disks.

    Example:
        ``{"path": "reports/may.csv", "target": "reports/old/may.csv"}``
    """
    files: Files = ctx.state
    ctx.check_egress(None, {"target": params.target})
    async with files.share(ctx):
        source = await files.find(ctx, params.path, "read")
        ctx.require(source.scope("write"))
        target = await files.find(ctx, params.target, "write")
        folder, into = files.folder(ctx, source), files.folder(ctx, target)
        async with files.alone(source, target):
            entry = await folder.entry(source.path)
            sha256 = await folder.digest(source.path, max_bytes=files.config.max_file_bytes)
            if params.expected not in (None, sha256):
                raise FileChanged(source.name)
            before = await look_first(ctx, into, target, overwrite=params.overwrite, expected=None)
            moved = Moved(
                path=source.name, target=target.name, size=entry.size, sha256=sha256, replaced=before is not None
            )
            noted = before.noted() if before else None
            await ctx.note(
                {
                    "path": source.name,
                    "target": target.name,
                    "sha256": sha256,
                    "before": noted,
                    "answer": moved.model_dump(),
                }
            )
            await folder.move(source.path, target.path, into=into, overwrite=before is not None, expected=sha256)
    return moved
