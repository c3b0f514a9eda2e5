"""Finds out what became of a change whose end was not seen, and plans how changes are taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import FileMissing

from ._sizes import size_text
from ._state import Files


async def _digest_now(ctx: OpContext, name: str) -> str | None:
    """The digest of what is at a path now; ``None`` for nothing.

    Raises:
        FileRefused: there is no ordinary file.
        FileTooLarge: it is larger than any file may be.
    """
    files: Files = ctx.state
    target = await files.find(ctx, name, "write")
    try:
        return await files.folder(ctx, target).digest(target.path, max_bytes=files.config.max_file_bytes)
    except FileMissing:
        return None


async def reconcile_change(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Compare what is there with what was there before, and with what was to be there."""
    note = recorded.note
    if not note:
        # the note comes before the change
        return Reconciled(happened=False)
    if "folder" in note:
        return await reconcile_folder(recorded, ctx)
    now = await _digest_now(ctx, note["path"])
    if now == _digest(note["after"]):
        return Reconciled(happened=True, result=note["answer"])
    if now == _digest(note["before"]):
        return Reconciled(happened=False)
    return None


async def reconcile_folder(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look whether the folder is there."""
    note = recorded.note
    if not note:
        return Reconciled(happened=False)
    there = await _folder_there(ctx, note["path"])
    happened = there == (note["folder"] == "made")
    return Reconciled(happened=happened, result=note["answer"] if happened else None)


async def _folder_there(ctx: OpContext, name: str) -> bool:
    files: Files = ctx.state
    target = await files.find(ctx, name, "write", folder=True)
    try:
        return (await files.folder(ctx, target).entry(target.path)).kind == "folder"
    except FileMissing:
        return False


async def undo_change(recorded: Recorded, ctx: OpContext) -> Undo:
    """Put back what was there before, unless it was changed again since."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was changed",))
    if "folder" in note:
        return await undo_folder(recorded, ctx)
    path, before, after = note["path"], note["before"], note["after"]
    now = await _digest_now(ctx, path)
    if now == _digest(before):
        return Undo(remains=(f"`{path}` is as it was before: there is nothing to take back",))
    if now != _digest(after):
        return Undo(remains=(f"`{path}` was changed again since: taking this back would undo that too",))
    return _as_before(path, before, now)


def _as_before(path: str, before: Mapping[str, Any] | None, now: str | None) -> Undo:
    if before is None:
        params = {"path": path, "expected": now}
        return Undo(steps=(UndoStep("files.restore", params, f"remove `{path}`, which was not there before"),))
    if not before["kept"]:
        return Undo(remains=(_was_not_kept(path, before),))
    return Undo(steps=(_put_back(path, before, expected=now),))


def _put_back(path: str, before: Mapping[str, Any], *, expected: str | None) -> UndoStep:
    """The step that has a file as it was."""
    params: dict[str, Any] = {"path": path, "blob": before["sha256"], "permissions": before["permissions"]}
    if expected is not None:
        params["expected"] = expected
    return UndoStep("files.restore", params, f"put back `{path}` ({size_text(before['size'])}) as it was")


def _was_not_kept(path: str, before: Mapping[str, Any]) -> str:
    """Why a file can't be put back."""
    return f"what `{path}` was before was not kept: it had {size_text(before['size'])}, more than `undo_bytes` allows"


async def undo_folder(recorded: Recorded, ctx: OpContext) -> Undo:
    """Remove a folder that was made, or make one that was deleted."""
    note = recorded.note
    if not note:
        return Undo(remains=("the folder was there before: nothing was changed",))
    path = note["path"]
    there = await _folder_there(ctx, path)
    if there == (note["folder"] == "deleted"):
        return Undo(remains=(f"`{path}` is as it was before: there is nothing to take back",))
    if there:
        step = UndoStep("files.delete", {"path": f"{path}/"}, f"remove the folder `{path}`, if nothing is in it")
    else:
        step = UndoStep("files.make_folder", {"path": path}, f"make the folder `{path}` again")
    return Undo(steps=(step,))


async def reconcile_move(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look where the file is now."""
    note = recorded.note
    if not note:
        return Reconciled(happened=False)
    here, there = await _digest_now(ctx, note["path"]), await _digest_now(ctx, note["target"])
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
    if await _digest_now(ctx, target) != note["sha256"]:
        return Undo(remains=(f"`{target}` is not what was moved there: it was changed or deleted since",))
    if await _digest_now(ctx, path) is not None:
        return Undo(remains=(f"there is another file at `{path}` by now",))
    back = {"path": target, "target": path, "expected": note["sha256"]}
    step = UndoStep("files.move", back, f"move `{target}` back to `{path}`")
    if before is None:
        return Undo(steps=(step,))
    if not before["kept"]:
        return Undo(steps=(step,), remains=(_was_not_kept(target, before),))
    return Undo(steps=(step, _put_back(target, before, expected=None)))


def _digest(noted: Mapping[str, Any] | None) -> str | None:
    return noted["sha256"] if noted else None
