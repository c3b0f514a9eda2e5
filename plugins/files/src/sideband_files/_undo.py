"""Reconciles and undoes changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import FileMissing

from ._sizes import size_text
from ._state import Files


async def _digest_now(ctx: OpContext, name: str) -> str | None:
    """Return the current digest of a file, or ``None`` if it does not exist.

    Raises:
        FileRefused: if it is not a regular file.
        FileTooLarge: if it exceeds the maximum size of a file.
    """
    files: Files = ctx.state
    target = await files.find(ctx, name, "write")
    try:
        return await files.folder(ctx, target).digest(target.path, max_bytes=files.config.max_file_bytes)
    except FileMissing:
        return None


async def reconcile_change(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Compare the current file with the recorded states before and after the change."""
    note = recorded.note
    if not note:
        # the note is recorded before the change
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
    """Check whether the folder exists."""
    note = recorded.note
    if not note:
        return Reconciled(happened=False)
    exists = await _folder_exists(ctx, note["path"])
    happened = exists == (note["folder"] == "made")
    return Reconciled(happened=happened, result=note["answer"] if happened else None)


async def _folder_exists(ctx: OpContext, name: str) -> bool:
    files: Files = ctx.state
    target = await files.find(ctx, name, "write", folder=True)
    try:
        return (await files.folder(ctx, target).entry(target.path)).kind == "folder"
    except FileMissing:
        return False


async def undo_change(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to restore the previous file, unless it was changed since."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was changed",))
    if "folder" in note:
        return await undo_folder(recorded, ctx)
    path, before, after = note["path"], note["before"], note["after"]
    now = await _digest_now(ctx, path)
    if now == _digest(before):
        return Undo(remains=(f"`{path}` already has its previous state: there is nothing to undo",))
    if now != _digest(after):
        return Undo(remains=(f"`{path}` was changed since: undo would discard that change",))
    return _plan_restore(path, before, now)


def _plan_restore(path: str, before: Mapping[str, Any] | None, now: str | None) -> Undo:
    if before is None:
        params = {"path": path, "expected": now}
        return Undo(steps=(UndoStep("files.restore", params, f"remove `{path}`, which did not exist before"),))
    if not before["kept"]:
        return Undo(remains=(_not_kept_reason(path, before),))
    return Undo(steps=(_restore_step(path, before, expected=now),))


def _restore_step(path: str, before: Mapping[str, Any], *, expected: str | None) -> UndoStep:
    """Return the step that restores a file."""
    params: dict[str, Any] = {"path": path, "blob": before["sha256"], "permissions": before["permissions"]}
    if expected is not None:
        params["expected"] = expected
    return UndoStep("files.restore", params, f"restore `{path}` ({size_text(before['size'])})")


def _not_kept_reason(path: str, before: Mapping[str, Any]) -> str:
    """Return the reason why a file cannot be restored."""
    return f"the previous content of `{path}` is not kept: its {size_text(before['size'])} exceed `undo_bytes`"


async def undo_folder(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to remove a created folder, or to create a deleted one."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was changed: the folder existed before",))
    path = note["path"]
    exists = await _folder_exists(ctx, path)
    if exists == (note["folder"] == "deleted"):
        return Undo(remains=(f"`{path}` already has its previous state: there is nothing to undo",))
    if exists:
        step = UndoStep("files.delete", {"path": f"{path}/"}, f"delete the folder `{path}` if it is empty")
    else:
        step = UndoStep("files.make_folder", {"path": path}, f"create the folder `{path}` again")
    return Undo(steps=(step,))


async def reconcile_move(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Determine where the file is now."""
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
    """Plan to move the file back, and to restore the file that it replaced."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was moved",))
    path, target, before = note["path"], note["target"], note["before"]
    if await _digest_now(ctx, target) != note["sha256"]:
        return Undo(remains=(f"`{target}` was changed or deleted since",))
    if await _digest_now(ctx, path) is not None:
        return Undo(remains=(f"another file exists at `{path}`",))
    back = {"path": target, "target": path, "expected": note["sha256"]}
    step = UndoStep("files.move", back, f"move `{target}` back to `{path}`")
    if before is None:
        return Undo(steps=(step,))
    if not before["kept"]:
        return Undo(steps=(step,), remains=(_not_kept_reason(target, before),))
    return Undo(steps=(step, _restore_step(target, before, expected=None)))


def _digest(recorded: Mapping[str, Any] | None) -> str | None:
    return recorded["sha256"] if recorded else None
