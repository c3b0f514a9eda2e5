"""How a file is changed: looked at, kept, noted, and only then replaced, if it is still what was looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen
from sideband.ops import OpContext
from sideband_confined_files import ConfinedFolder, FileChanged, FileMissing, FileTaken, NewFile

from ._kept import Before, look
from ._state import Files
from ._targets import FileTarget


@frozen
class Change:
    """What a change of one file made of it, and what it was before.

    Attributes:
        before: as it was; ``None`` if it was not there.
        size: its bytes now.
        sha256: its digest now.
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
    """Have other content at a path: whole or not at all, noted before, and kept as far as the limits allow.

    Args:
        ctx: the dispatch.
        target: the file.
        fill: writes the content.
        answer: what the op will answer, for the record.
        overwrite: whether a file that is there may be replaced.
        expected: the digest that it must have; it may be replaced then.
        permissions: the lower nine bits of its mode; by default those that it has.
    """
    files: Files = ctx.state
    folder = files.folder(ctx, target)
    before = await look_first(ctx, folder, target, overwrite=overwrite, expected=expected)
    limit = files.config.max_file_bytes
    async with folder.writing(target.path, overwrite=before is not None, max_bytes=limit) as new:
        await fill(new, before)
        change = Change(before, new.size, await new.complete())
        await ctx.note(
            {
                "path": target.name,
                "before": before.noted() if before else None,
                "after": {"sha256": change.sha256, "size": change.size},
                "answer": dict(answer(change)),
            }
        )
        await new.commit(expected=before.sha256 if before else None, permissions=permissions)
    return change


async def remove(
    ctx: OpContext, target: FileTarget, answer: Callable[[Before], Mapping[str, Any]], *, expected: str | None
) -> Before:
    """Have nothing at a path where there is a file."""
    files: Files = ctx.state
    folder = files.folder(ctx, target)
    before = await look_first(ctx, folder, target, overwrite=True, expected=expected)
    if before is None:
        raise FileMissing(target.name)
    note = {"path": target.name, "before": before.noted(), "after": None, "answer": dict(answer(before))}
    await ctx.note(note)
    await folder.remove(target.path, expected=before.sha256)
    return before


async def look_first(
    ctx: OpContext, folder: ConfinedFolder, target: FileTarget, *, overwrite: bool, expected: str | None
) -> Before | None:
    """What is at a path that is to be changed, kept as far as the limits allow.

    Raises:
        FileTaken: there is something, and it must not be replaced.
        FileChanged: it is not what was expected.
    """
    files: Files = ctx.state
    if expected is None and not overwrite:
        if await _is_there(folder, target):
            raise FileTaken(target.name)
        return None
    before = await look(folder, target, ctx, files.config)
    if expected is not None and before is None:
        raise FileChanged(target.name, gone=True)
    if expected is not None and before is not None and before.sha256 != expected:
        raise FileChanged(target.name)
    return before


async def _is_there(folder: ConfinedFolder, target: FileTarget) -> bool:
    try:
        await folder.entry(target.path)
    except FileMissing:
        return False
    return True
