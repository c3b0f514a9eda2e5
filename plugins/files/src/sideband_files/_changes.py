"""Changes one file: inspects it, keeps its content, records the change, and replaces it only if it is unchanged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen
from sideband.ops import OpContext
from sideband_confined_files import ConfinedFolder, FileChanged, FileMissing, FileTaken, NewFile

from ._kept import Before, inspect
from ._state import Files
from ._targets import FileTarget


@frozen
class Change:
    """The change of one file.

    Attributes:
        before: the previous file; ``None`` if it did not exist.
        size: the new size in bytes.
        sha256: the new digest.
    """

    before: Before | None
    size: int
    sha256: str


async def put(
    ctx: OpContext,
    target: FileTarget,
    fill: Callable[[NewFile, Before | None], Awaitable[None]],
    answer: Callable[[Change], Mapping[str, Any]],
    *,
    overwrite: bool,
    expected: str | None,
    permissions: int | None = None,
) -> Change:
    """Write content to a path atomically. Keep the previous content, and record the change, before it is made.

    Args:
        ctx: the op's context.
        target: the file.
        fill: writes the content.
        answer: returns the op's result, for the record.
        overwrite: whether an existing file may be replaced.
        expected: the digest that an existing file must have to be replaced.
        permissions: the permission bits; by default those of the replaced file.
    """
    files: Files = ctx.state
    before = await inspect_target(ctx, target, overwrite=overwrite, expected=expected)
    target = await files.pin(ctx, target, create=before is None)
    folder = files.folder(ctx, target)
    limit = files.config.max_file_bytes
    async with folder.writing(target.path, overwrite=before is not None, max_bytes=limit) as new:
        await fill(new, before)
        change = Change(before, new.size, await new.complete())
        await ctx.note(
            {
                "path": target.name,
                "folders": target.folders,
                "before": before.to_record() if before else None,
                "after": {"sha256": change.sha256, "size": change.size},
                "answer": dict(answer(change)),
            }
        )
        await new.commit(expected=before.sha256 if before else None, permissions=permissions)
    return change


async def remove(
    ctx: OpContext, target: FileTarget, answer: Callable[[Before], Mapping[str, Any]], *, expected: str | None
) -> Before:
    """Remove the file at a path."""
    files: Files = ctx.state
    before = await inspect_target(ctx, target, overwrite=True, expected=expected)
    if before is None:
        raise FileMissing(target.name)
    target = await files.pin(ctx, target)
    note = {"path": target.name, "folders": target.folders, "before": before.to_record(), "after": None}
    await ctx.note({**note, "answer": dict(answer(before))})
    await files.folder(ctx, target).remove(target.path, expected=before.sha256)
    return before


async def inspect_target(ctx: OpContext, target: FileTarget, *, overwrite: bool, expected: str | None) -> Before | None:
    """Return the file that will be changed, with its content kept if the limits allow it.

    Raises:
        FileTaken: if it exists and must not be replaced.
        FileChanged: if it has another digest than expected.
    """
    files: Files = ctx.state
    folder = files.folder(ctx, target)
    if expected is None and not overwrite:
        if await _exists(folder, target):
            raise FileTaken(target.name)
        return None
    before = await inspect(folder, target, ctx, files.config)
    if expected is not None and before is None:
        raise FileChanged(target.name, gone=True)
    if expected is not None and before is not None and before.sha256 != expected:
        raise FileChanged(target.name)
    return before


async def _exists(folder: ConfinedFolder, target: FileTarget) -> bool:
    try:
        await folder.entry(target.path)
    except FileMissing:
        return False
    return True
