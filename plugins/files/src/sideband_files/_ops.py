"""The ops that change files: `files.write`, `files.copy`, `files.delete`, `files.make_folder` and `files.restore`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anyio import to_thread
from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op
from sideband_confined_files import FileMissing, NewFile

from ._changes import Change, put, remove
from ._kept import Before
from ._models import (
    CopyParams,
    Deleted,
    DeleteParams,
    FolderMade,
    FolderParams,
    Restored,
    RestoreParams,
    WriteParams,
    Written,
)
from ._places import Target, locate
from ._preview import preview_copy, preview_delete, preview_folder, preview_restore, preview_write
from ._state import Files
from ._taking_back import reconcile_change, reconcile_folder, undo_change, undo_folder

__all__ = ["copy", "delete", "make_folder", "restore", "write"]

# A window over two pieces: a secret that is cut in two by them is found too.
_OVERLAP = 64 * 1024


def _with_blob(params: WriteParams | RestoreParams) -> Iterable[Scope]:
    yield locate(params.path).scope("write")
    if params.blob is not None:
        yield BlobScope(mode="read")


def _changing(params: DeleteParams) -> Scope:
    return locate(params.path).scope("write")


@op(
    "files.write",
    requires="files",
    scope=_with_blob,
    level=Level.CONTROLLED,
    record=("path", "blob", "overwrite", "append", "expected"),
    preview=preview_write,
    reconcile=reconcile_change,
    undo=undo_change,
)
async def write(params: WriteParams, ctx: OpContext) -> Written:
    """Write a file, whole or not at all, for its owner only. Folders that are missing are made.

    Args:
        params: `content` is text or bytes, or `blob` names a blob; `overwrite` lets it replace a file, `append` adds to
            one, and `expected` is the SHA-256 that the file must have to be replaced.
        ctx: the dispatch.

    Returns:
        Size and digest of the whole file.

    Raises:
        FileTaken: there is a file, and it must not be replaced.
        FileChanged: it is not what was expected.
        FileRefused: there is no ordinary file, or the path leads elsewhere.
        FileFailed: the disk is full, for instance; nothing was changed.
        EgressRefused: it holds a known secret.

    Example:
        ``{"path": "reports/may.csv", "content": "day,count"}``
    """
    files: Files = ctx.state

    async def fill(new: NewFile, before: Before | None) -> None:
        if params.append and before is not None:
            async with files.folder(ctx, target).reading(target.path) as reader:
                while piece := await reader.read():
                    await new.write(piece)
        await _fill(ctx, new, params)

    def answer(change: Change) -> dict[str, Any]:
        return _written(target, change).model_dump()

    ctx.check_egress(None, {"path": params.path})
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write")
        async with files.alone(target):
            overwrite = params.overwrite or params.append
            change = await put(ctx, target, fill, answer, overwrite=overwrite, expected=params.expected)
    return _written(target, change)


async def _fill(ctx: OpContext, new: NewFile, params: WriteParams) -> None:
    if params.content is not None:
        await _check(ctx, "content", params.content)
        await new.write(params.content.encode() if isinstance(params.content, str) else params.content)
    elif params.blob is not None:
        tail = b""
        async with ctx.blobs.open(params.blob) as reader:
            async for piece in reader:
                await _check(ctx, "blob", tail + piece)
                tail = piece[-_OVERLAP:]
                await new.write(piece)


async def _check(ctx: OpContext, part: str, content: str | bytes) -> None:
    """Let no known secret into a file. Looking for many of them in a lot of content takes its time, so in a thread."""
    await to_thread.run_sync(ctx.check_egress, None, {part: content})


def _written(target: Target, change: Change) -> Written:
    return Written(path=target.name, size=change.size, sha256=change.sha256, replaced=change.before is not None)


def _copying(params: CopyParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    yield locate(params.target).scope("write")


@op(
    "files.copy",
    requires="files",
    scope=_copying,
    level=Level.CONTROLLED,
    record=("path", "target", "overwrite"),
    preview=preview_copy,
    reconcile=reconcile_change,
    undo=undo_change,
)
async def copy(params: CopyParams, ctx: OpContext) -> Written:
    """Copy a file, whole or not at all.

    Args:
        params: `path` is the file, `target` the path of the copy; `overwrite` lets it replace a file.
        ctx: the dispatch.

    Returns:
        Path, size and digest of the copy.

    Raises:
        FileMissing: there is nothing to copy.
        FileTaken: there is a file at the target, and it must not be replaced.
        FileRefused, FileFailed: as for `files.write`.

    Example:
        ``{"path": "reports/may.csv", "target": "reports/old/may.csv"}``
    """
    files: Files = ctx.state

    async def fill(new: NewFile, before: Before | None) -> None:  # noqa: ARG001  as `put` calls it
        async with files.folder(ctx, source).reading(source.path) as reader:
            while piece := await reader.read():
                await new.write(piece)

    def answer(change: Change) -> dict[str, Any]:
        return _written(target, change).model_dump()

    ctx.check_egress(None, {"target": params.target})
    async with files.share(ctx):
        source = await files.find(ctx, params.path, "read")
        target = await files.find(ctx, params.target, "write")
        async with files.alone(target):
            change = await put(ctx, target, fill, answer, overwrite=params.overwrite, expected=None)
    return _written(target, change)


@op(
    "files.delete",
    requires="files",
    scope=_changing,
    level=Level.CONTROLLED,
    record=("path", "expected"),
    preview=preview_delete,
    reconcile=reconcile_change,
    undo=undo_change,
)
async def delete(params: DeleteParams, ctx: OpContext) -> Deleted:
    """Delete a file, or a folder with nothing in it.

    Args:
        params: `path`, with a `/` at its end for a folder; `expected` is the SHA-256 that a file must have.
        ctx: the dispatch.

    Returns:
        What it was.

    Raises:
        FileMissing: it is not there.
        FileChanged: it is not what was expected.
        FileRefused: there is something in the folder, or it is neither file nor folder.

    Example:
        ``{"path": "reports/may.csv"}``
    """
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write")
        async with files.alone(target):
            if target.folder:
                await _delete_folder(ctx, target)
                return Deleted(path=target.name, kind="folder")

            def answer(before: Before) -> dict[str, Any]:
                return Deleted(path=target.name, kind="file", size=before.size).model_dump()

            before = await remove(ctx, target, answer, expected=params.expected)
    return Deleted(path=target.name, kind="file", size=before.size)


async def _delete_folder(ctx: OpContext, target: Target) -> None:
    files: Files = ctx.state
    answer = Deleted(path=target.name, kind="folder").model_dump()
    await ctx.note({"path": target.name, "folder": "deleted", "answer": answer})
    await files.folder(ctx, target).remove_folder(target.path)


def _making(params: FolderParams) -> Scope:
    return locate(params.path, folder=True).scope("write")


@op(
    "files.make_folder",
    requires="files",
    scope=_making,
    level=Level.CONTROLLED,
    idempotent=True,
    record=("path",),
    preview=preview_folder,
    reconcile=reconcile_folder,
    undo=undo_folder,
)
async def make_folder(params: FolderParams, ctx: OpContext) -> FolderMade:
    """Make a folder, and those on the way to it, for their owner only. One that is there is left as it is.

    Args:
        params: `path`.
        ctx: the dispatch.

    Returns:
        Whether it was not there before.

    Raises:
        FileTaken: there is a file with this name.
        FileRefused: a step on the way is a file or a link.

    Example:
        ``{"path": "reports/2026"}``
    """
    files: Files = ctx.state
    ctx.check_egress(None, {"path": params.path})
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write", folder=True)
        folder = files.folder(ctx, target)
        async with files.alone(target):
            try:
                await folder.entry(target.path)
                there = True
            except FileMissing:
                there = False
            if not there:
                answer = FolderMade(path=target.name, made=True).model_dump()
                await ctx.note({"path": target.name, "folder": "made", "answer": answer})
            return FolderMade(path=target.name, made=await folder.make(target.path))


@op(
    "files.restore",
    requires="files",
    scope=_with_blob,
    level=Level.CONTROLLED,
    record=("path", "blob", "expected", "permissions"),
    preview=preview_restore,
    reconcile=reconcile_change,
    undo=undo_change,
)
async def restore(params: RestoreParams, ctx: OpContext) -> Restored:
    """Put back what a file was before, if nobody has changed it since. Taking changes back is made of this.

    Args:
        params: `blob` is what it was (without one, the file is removed); `expected` is the SHA-256 of what is there now
            (without one, nothing must be there); `permissions` are those that it had.
        ctx: the dispatch.

    Returns:
        What is there now.

    Raises:
        FileChanged: what is there is not what was expected.
        FileTaken: there is something, and nothing was expected.
        BlobMissing: what it was is not kept any more.

    Example:
        ``{"path": "reports/may.csv", "expected": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    files: Files = ctx.state
    sha256 = params.blob

    def answer(change: Change) -> dict[str, Any]:
        return Restored(path=target.name, sha256=change.sha256, size=change.size).model_dump()

    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write")
        async with files.alone(target):
            if sha256 is None:
                gone = Restored(path=target.name)
                await remove(ctx, target, lambda _: gone.model_dump(), expected=params.expected)
                return gone

            async def fill(new: NewFile, before: Before | None) -> None:  # noqa: ARG001  as `put` calls it
                async with ctx.blobs.open(sha256) as reader:
                    async for piece in reader:
                        await new.write(piece)

            change = await put(
                ctx, target, fill, answer, overwrite=False, expected=params.expected, permissions=params.permissions
            )
    return Restored(path=target.name, sha256=change.sha256, size=change.size)
