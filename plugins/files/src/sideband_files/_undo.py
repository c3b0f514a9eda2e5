"""Reconciles and undoes changes, in the folders in which they happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import FileMissing, FileRefused, FileReplaced

from ._sizes import size_text
from ._state import Files

_Plan = Callable[[Recorded, OpContext], Awaitable[Undo]]


def _planning(plan: _Plan) -> _Plan:
    """Wrap a function that plans an undo: report a path that leads to something else than what was recorded."""

    @wraps(plan)
    async def wrapper(recorded: Recorded, ctx: OpContext) -> Undo:
        if recorded.note and "folders" not in recorded.note:
            return Undo(remains=("an older version made the record, which does not contain the folders",))
        try:
            return await plan(recorded, ctx)
        except (FileReplaced, FileRefused) as error:
            return Undo(remains=(error.message,))

    return wrapper


async def _digest_now(ctx: OpContext, name: str, folders: Sequence[str]) -> str | None:
    """Return the current digest of a file in the recorded folder, or ``None`` if it does not exist.

    Raises:
        FileReplaced: if the path does not lead to a file in the recorded folder.
        FileRefused: if it is not accessible.
        FileTooLarge: if it exceeds the maximum size of a file.
    """
    files: Files = ctx.state
    target = await files.find(ctx, name, "write", folders=folders)
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
    now = await _digest_now(ctx, note["path"], note["folders"])
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
    files: Files = ctx.state
    target = await files.find(ctx, note["path"], "write", folder=True, folders=note["folders"])
    try:
        exists = (await files.folder(ctx, target).entry(target.path)).kind == "folder"
    except FileMissing:
        exists = False
    happened = exists == (note["folder"] == "made")
    return Reconciled(happened=happened, result=note["answer"] if happened else None)


@_planning
async def undo_change(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to restore the previous file, unless it was changed since."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was changed",))
    if "folder" in note:
        return await undo_folder(recorded, ctx)
    path, folders, before, after = note["path"], note["folders"], note["before"], note["after"]
    now = await _digest_now(ctx, path, folders)
    if now == _digest(before):
        return Undo(remains=(f"`{path}` already has its previous state: there is nothing to undo",))
    if now != _digest(after):
        return Undo(remains=(f"`{path}` was changed since: undo would discard that change",))
    return _plan_restore(path, folders, before, now)


def _plan_restore(path: str, folders: Sequence[str], before: Mapping[str, Any] | None, now: str | None) -> Undo:
    if before is None:
        params = {"path": path, "folders": folders, "expected": now}
        return Undo(steps=(UndoStep("files.restore", params, f"remove `{path}`, which did not exist before"),))
    if not before["kept"]:
        return Undo(remains=(_not_kept_reason(path, before),))
    return Undo(steps=(_restore_step(path, folders, before, expected=now),))


def _restore_step(path: str, folders: Sequence[str], before: Mapping[str, Any], *, expected: str | None) -> UndoStep:
    """Return the step that restores a file."""
    params: dict[str, Any] = {"path": path, "folders": folders}
    params |= {"blob": before["sha256"], "permissions": before["permissions"]}
    if expected is not None:
        params["expected"] = expected
    return UndoStep("files.restore", params, f"restore `{path}` ({size_text(before['size'])})")


def _not_kept_reason(path: str, before: Mapping[str, Any]) -> str:
    """Return the reason why a file cannot be restored."""
    return f"the previous content of `{path}` is not kept: its {size_text(before['size'])} exceed `undo_bytes`"


@_planning
async def undo_folder(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to remove a created folder, or to create a deleted one."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was changed: the folder existed before",))
    path, folders = note["path"], note["folders"]
    exists = await _folder_exists(ctx, path, folders)
    if exists == (note["folder"] == "deleted"):
        return Undo(remains=(f"`{path}` already has its previous state: there is nothing to undo",))
    if exists:
        params = {"path": f"{path}/", "folders": folders}
        return Undo(steps=(UndoStep("files.delete", params, f"delete the folder `{path}` if it is empty"),))
    params = {"path": path, "folders": folders}
    return Undo(steps=(UndoStep("files.make_folder", params, f"create the folder `{path}` again"),))


async def _folder_exists(ctx: OpContext, name: str, folders: Sequence[str]) -> bool:
    """Return whether the recorded folder exists.

    Raises:
        FileReplaced: if the path leads to something else.
    """
    files: Files = ctx.state
    target = await files.find(ctx, name, "write", folder=True, folders=folders)
    try:
        await files.pin(ctx, target, itself=True)
    except FileMissing:
        return False
    return True


async def reconcile_move(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Determine where the file is now."""
    note = recorded.note
    if not note:
        return Reconciled(happened=False)
    here = await _digest_now(ctx, note["path"], note["folders"])
    there = await _digest_now(ctx, note["target"], note["target_folders"])
    if here is None and there == note["sha256"]:
        return Reconciled(happened=True, result=note["answer"])
    if here == note["sha256"] and there == (note["before"] or {}).get("sha256"):
        return Reconciled(happened=False)
    return None


@_planning
async def undo_move(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan to move the file back, and to restore the file that it replaced."""
    note = recorded.note
    if not note:
        return Undo(remains=("nothing was moved",))
    path, target, before = note["path"], note["target"], note["before"]
    folders, target_folders = note["folders"], note["target_folders"]
    if await _digest_now(ctx, target, target_folders) != note["sha256"]:
        return Undo(remains=(f"`{target}` was changed or deleted since",))
    if await _digest_now(ctx, path, folders) is not None:
        return Undo(remains=(f"another file exists at `{path}`",))
    back = {"path": target, "folders": target_folders, "target": path, "target_folders": folders}
    step = UndoStep("files.move", {**back, "expected": note["sha256"]}, f"move `{target}` back to `{path}`")
    if before is None:
        return Undo(steps=(step,))
    if not before["kept"]:
        return Undo(steps=(step,), remains=(_not_kept_reason(target, before),))
    return Undo(steps=(step, _restore_step(target, target_folders, before, expected=None)))


def _digest(recorded: Mapping[str, Any] | None) -> str | None:
    return recorded["sha256"] if recorded else None
