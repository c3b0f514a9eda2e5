"""The ops of the family `files`."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._models import (
    FileCopyParams,
    FileDeleteParams,
    FileDeleteResult,
    FileFindParams,
    FileFindResult,
    FileListParams,
    FileListResult,
    FileMoveParams,
    FileMoveResult,
    FileReadParams,
    FileReadResult,
    FileRestoreParams,
    FileRestoreResult,
    FileStatParams,
    FileStatus,
    FileWriteParams,
    FileWriteResult,
    FolderMakeParams,
    FolderMakeResult,
)
from ._preview import preview_copy, preview_delete, preview_folder, preview_move, preview_restore, preview_write
from ._reading import file_status, find_entries, list_entries, read_file
from ._targets import locate
from ._undo import reconcile_change, reconcile_folder, reconcile_move, undo_change, undo_folder, undo_move
from ._writing import copy_file, create_folder, delete_path, move_file, restore_file, write_file


def _reading(params: FileReadParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    if params.kind == "blob":
        yield BlobScope(mode="write")


def _listing(params: FileListParams | FileFindParams) -> Scope:
    return locate(params.path, folder=True).scope("read", hidden=params.hidden)


def _looking(params: FileStatParams) -> Scope:
    return locate(params.path).scope("read")


def _with_blob(params: FileWriteParams | FileRestoreParams) -> Iterable[Scope]:
    yield locate(params.path).scope("write")
    if params.blob is not None:
        yield BlobScope(mode="read")


def _copying(params: FileCopyParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    yield locate(params.target).scope("write")


def _moving(params: FileMoveParams) -> Iterable[Scope]:
    source = locate(params.path)
    # what is moved can be read at the target
    yield source.scope("read")
    yield source.scope("write")
    yield locate(params.target).scope("write")


def _changing(params: FileDeleteParams) -> Scope:
    return locate(params.path).scope("write")


def _making(params: FolderMakeParams) -> Scope:
    return locate(params.path, folder=True).scope("write")


@op("files.read", requires="files", scope=_reading, level=Level.MONITORED, record=("path", "kind", "offset", "length"))
async def read(params: FileReadParams, ctx: OpContext) -> FileReadResult:
    """Read a file, or a part of it.

    Args:
        params: `path` is below the host's folder for files, or absolute; `kind` is `text` (UTF-8), `bytes` or `blob`;
            `offset` and `length` are in bytes.
        ctx: the dispatch.

    Returns:
        The content, and the digest if that was all of it. Of a longer text, `next` says where to go on.

    Raises:
        FileMissing: it is not there.
        FileRefused: it is no ordinary file.
        FileTooLarge: it is larger than may be read at once.
        FilesNotText: it is no UTF-8.
        EgressRefused: the part begins or ends inside of a known secret.

    Example:
        ``{"path": "reports/may.csv"}``
    """
    return await read_file(params, ctx)


@op("files.list", requires="files", scope=_listing, level=Level.MONITORED, record=("path", "after", "limit", "hidden"))
async def list_(params: FileListParams, ctx: OpContext) -> FileListResult:
    """List the names in a folder, in order, page by page.

    Args:
        params: `path` is the folder; `limit` and `after` are for pages; `hidden` asks for names with a dot too.
        ctx: the dispatch.

    Returns:
        Name, kind, size and time of each; `next` if there are more.

    Raises:
        FileMissing: there is no such folder.
        FileRefused: it is no folder.

    Example:
        ``{"path": "reports"}``
    """
    return await list_entries(params, ctx)


@op(
    "files.find", requires="files", scope=_listing, level=Level.MONITORED, record=("path", "pattern", "limit", "hidden")
)
async def find(params: FileFindParams, ctx: OpContext) -> FileFindResult:
    """Find files and folders by a pattern, in a folder and all below it. No link is followed.

    Args:
        params: `pattern` is matched with paths below `path`: `*` and `?` within a name, `**` for any folders.
        ctx: the dispatch.

    Returns:
        What matches, with paths below `path`.

    Raises:
        FileMissing: there is no such folder.
        FilesTooMany: it holds more names than may be looked at.

    Example:
        ``{"pattern": "**/*.csv", "path": "reports"}``
    """
    return await find_entries(params, ctx)


@op("files.stat", requires="files", scope=_looking, level=Level.MONITORED, record=("path", "digest"))
async def stat(params: FileStatParams, ctx: OpContext) -> FileStatus:
    """Tell what is at a path: kind, size, time, permissions, and its digest if asked for.

    Args:
        params: `path`, and `digest` for the SHA-256 of a file.
        ctx: the dispatch.

    Returns:
        What is known.

    Raises:
        FileMissing: there is nothing.
        FileTooLarge: its digest was asked for, and it is larger than a file may be.

    Example:
        ``{"path": "reports/may.csv", "digest": true}``
    """
    return await file_status(params, ctx)


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
async def write(params: FileWriteParams, ctx: OpContext) -> FileWriteResult:
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
    return await write_file(params, ctx)


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
async def copy(params: FileCopyParams, ctx: OpContext) -> FileWriteResult:
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
    return await copy_file(params, ctx)


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
async def move(params: FileMoveParams, ctx: OpContext) -> FileMoveResult:
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
    return await move_file(params, ctx)


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
async def delete(params: FileDeleteParams, ctx: OpContext) -> FileDeleteResult:
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
    return await delete_path(params, ctx)


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
async def make_folder(params: FolderMakeParams, ctx: OpContext) -> FolderMakeResult:
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
    return await create_folder(params, ctx)


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
async def restore(params: FileRestoreParams, ctx: OpContext) -> FileRestoreResult:
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
    return await restore_file(params, ctx)
