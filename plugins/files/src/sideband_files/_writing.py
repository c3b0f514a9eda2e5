"""The work of the changing ops: write, copy, move, delete, make_folder and restore."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from sideband.ops import OpContext
from sideband_confined_files import FileChanged, FileMissing, NewFile

from ._changes import Change, inspect_target, put, remove
from ._kept import Before
from ._models import (
    FileCopyParams,
    FileDeleteParams,
    FileDeleteResult,
    FileMoveParams,
    FileMoveResult,
    FileRestoreParams,
    FileRestoreResult,
    FileWriteParams,
    FileWriteResult,
    FolderMakeParams,
    FolderMakeResult,
)
from ._state import Files
from ._targets import FileTarget

# overlap of consecutive chunks, so that a secret across their boundary is found
_OVERLAP = 64 * 1024


async def write_file(params: FileWriteParams, ctx: OpContext) -> FileWriteResult:
    """Write a file atomically."""
    files: Files = ctx.state

    async def fill(new: NewFile, before: Before | None) -> None:
        if params.append and before is not None:
            async with files.folder(ctx, target).reading(target.path) as reader:
                while chunk := await reader.read():
                    await new.write(chunk)
        await _fill(ctx, new, params)

    def answer(change: Change) -> dict[str, Any]:
        return _written(target, change).model_dump()

    ctx.check_egress(None, {"path": params.path})
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write")
        async with files.locked(target):
            overwrite = params.overwrite or params.append
            change = await put(ctx, target, fill, answer, overwrite=overwrite, expected=params.expected)
    return _written(target, change)


async def _fill(ctx: OpContext, new: NewFile, params: FileWriteParams) -> None:
    if params.content is not None:
        await _check(ctx, "content", params.content)
        await new.write(params.content.encode() if isinstance(params.content, str) else params.content)
    elif params.blob is not None:
        tail = b""
        async with ctx.blobs.open(params.blob) as reader:
            async for chunk in reader:
                await _check(ctx, "blob", tail + chunk)
                tail = chunk[-_OVERLAP:]
                await new.write(chunk)


async def _check(ctx: OpContext, part: str, content: str | bytes) -> None:
    """Reject content that contains a known secret. Runs in a thread, since searching for many secrets takes time."""
    await to_thread.run_sync(ctx.check_egress, None, {part: content})


def _written(target: FileTarget, change: Change) -> FileWriteResult:
    return FileWriteResult(path=target.name, size=change.size, sha256=change.sha256, replaced=change.before is not None)


async def copy_file(params: FileCopyParams, ctx: OpContext) -> FileWriteResult:
    """Copy a file atomically."""
    files: Files = ctx.state

    async def fill(new: NewFile, before: Before | None) -> None:  # noqa: ARG001  required by `put`
        async with files.folder(ctx, source).reading(source.path) as reader:
            while chunk := await reader.read():
                await new.write(chunk)

    def answer(change: Change) -> dict[str, Any]:
        return _written(target, change).model_dump()

    ctx.check_egress(None, {"target": params.target})
    async with files.share(ctx):
        source = await files.find(ctx, params.path, "read")
        target = await files.find(ctx, params.target, "write")
        async with files.locked(target):
            change = await put(ctx, target, fill, answer, overwrite=params.overwrite, expected=None)
    return _written(target, change)


async def move_file(params: FileMoveParams, ctx: OpContext) -> FileMoveResult:
    """Move a file to another path on the same disk."""
    files: Files = ctx.state
    ctx.check_egress(None, {"target": params.target})
    async with files.share(ctx):
        source = await files.find(ctx, params.path, "read", folders=params.folders)
        ctx.require(source.scope("write"))
        target = await files.find(ctx, params.target, "write", folders=params.target_folders)
        async with files.locked(source, target):
            folder = files.folder(ctx, source)
            entry = await folder.entry(source.path)
            sha256 = await folder.digest(source.path, max_bytes=files.config.max_file_bytes)
            if params.expected not in (None, sha256):
                raise FileChanged(source.name)
            before = await inspect_target(ctx, target, overwrite=params.overwrite, expected=None)
            source, target = await files.pin(ctx, source), await files.pin(ctx, target, create=True)
            moved = FileMoveResult(
                path=source.name, target=target.name, size=entry.size, sha256=sha256, replaced=before is not None
            )
            await ctx.note(
                {
                    "path": source.name,
                    "folders": source.folders,
                    "target": target.name,
                    "target_folders": target.folders,
                    "sha256": sha256,
                    "before": before.to_record() if before else None,
                    "answer": moved.model_dump(),
                }
            )
            folder, into = files.folder(ctx, source), files.folder(ctx, target)
            await folder.move(source.path, target.path, into=into, overwrite=before is not None, expected=sha256)
    return moved


async def delete_path(params: FileDeleteParams, ctx: OpContext) -> FileDeleteResult:
    """Delete a file or an empty folder."""
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write", folders=params.folders)
        async with files.locked(target):
            if target.folder:
                await _delete_folder(ctx, target)
                return FileDeleteResult(path=target.name, kind="folder")

            def answer(before: Before) -> dict[str, Any]:
                return FileDeleteResult(path=target.name, kind="file", size=before.size).model_dump()

            before = await remove(ctx, target, answer, expected=params.expected)
    return FileDeleteResult(path=target.name, kind="file", size=before.size)


async def _delete_folder(ctx: OpContext, target: FileTarget) -> None:
    files: Files = ctx.state
    answer = FileDeleteResult(path=target.name, kind="folder").model_dump()
    target = await files.pin(ctx, target, itself=True)
    await ctx.note({"path": target.name, "folders": target.folders, "folder": "deleted", "answer": answer})
    await files.folder(ctx, target).remove_folder(target.path)


async def create_folder(params: FolderMakeParams, ctx: OpContext) -> FolderMakeResult:
    """Create a folder and its parents."""
    files: Files = ctx.state
    ctx.check_egress(None, {"path": params.path})
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write", folder=True, folders=params.folders)
        async with files.locked(target):
            try:
                await files.folder(ctx, target).entry(target.path)
                exists = True
            except FileMissing:
                exists = False
            if not exists:
                parents = await files.folder(ctx, target).folders(target.path, create=True)
                answer = FolderMakeResult(path=target.name, made=True).model_dump()
                await ctx.note({"path": target.name, "folders": parents, "folder": "made", "answer": answer})
            made = await files.folder(ctx, target).make(target.path)
            if made:
                await ctx.note({"folders": (await files.pin(ctx, target, itself=True)).folders})
            return FolderMakeResult(path=target.name, made=made)


async def restore_file(params: FileRestoreParams, ctx: OpContext) -> FileRestoreResult:
    """Restore the previous content of a file if it was not changed since."""
    files: Files = ctx.state
    sha256 = params.blob

    def answer(change: Change) -> dict[str, Any]:
        return FileRestoreResult(path=target.name, sha256=change.sha256, size=change.size).model_dump()

    async with files.share(ctx):
        target = await files.find(ctx, params.path, "write", folders=params.folders)
        async with files.locked(target):
            if sha256 is None:
                removed = FileRestoreResult(path=target.name)
                await remove(ctx, target, lambda _: removed.model_dump(), expected=params.expected)
                return removed

            async def fill(new: NewFile, before: Before | None) -> None:  # noqa: ARG001  required by `put`
                async with ctx.blobs.open(sha256) as reader:
                    async for chunk in reader:
                        await new.write(chunk)

            change = await put(
                ctx, target, fill, answer, overwrite=False, expected=params.expected, permissions=params.permissions
            )
    return FileRestoreResult(path=target.name, sha256=change.sha256, size=change.size)
