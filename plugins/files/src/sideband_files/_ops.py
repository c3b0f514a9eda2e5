"""The ops of the family `files`."""

from __future__ import annotations

from collections.abc import Iterable

from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op

from ._lines import read_lines
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
from ._search import search_lines
from ._targets import locate
from ._text_models import FileLinesParams, FileLinesResult, FileSearchParams, FileSearchResult
from ._undo import reconcile_change, reconcile_folder, reconcile_move, undo_change, undo_folder, undo_move
from ._writing import copy_file, create_folder, delete_path, move_file, restore_file, write_file

_READ = {"mode": ("read",)}
_WRITE = {"mode": ("write",)}


def _reading(params: FileReadParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    if params.kind == "blob":
        yield BlobScope(mode="write")


def _listing(params: FileListParams | FileFindParams | FileSearchParams) -> Scope:
    return locate(params.path, folder=True).scope("read", hidden=params.hidden)


def _inspecting(params: FileStatParams | FileLinesParams) -> Scope:
    return locate(params.path).scope("read")


def _with_blob(params: FileWriteParams) -> Iterable[Scope]:
    yield locate(params.path).scope("write")
    if params.blob is not None:
        yield BlobScope(mode="read")


def _restoring(params: FileRestoreParams) -> Iterable[Scope]:
    yield locate(params.path, folders=params.folders).scope("write")
    if params.blob is not None:
        yield BlobScope(mode="read")


def _copying(params: FileCopyParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    yield locate(params.target).scope("write")


def _moving(params: FileMoveParams) -> Iterable[Scope]:
    source = locate(params.path, folders=params.folders)
    # a moved file is readable at its target, so reading must be granted as well
    yield source.scope("read")
    yield source.scope("write")
    yield locate(params.target, folders=params.target_folders).scope("write")


def _changing(params: FileDeleteParams) -> Scope:
    return locate(params.path, folders=params.folders).scope("write")


def _making(params: FolderMakeParams) -> Scope:
    return locate(params.path, folder=True, folders=params.folders).scope("write")


@op(
    "files.read",
    requires="files",
    scope=_reading,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "kind", "offset", "length"),
    egress=False,
)
async def read(params: FileReadParams, ctx: OpContext) -> FileReadResult:
    """Read a file or a part of it.

    Args:
        params: `path` is relative to the host's folder for files, or absolute; `kind` is `text` (UTF-8), `bytes` or
            `blob`; `offset` and `length` are in bytes.
        ctx: the op's context.

    Returns:
        The content, and its digest if all of the file was read. If there is more, `next` is the offset of the rest.

    Raises:
        FileMissing: if the file does not exist.
        FileRefused: if it is not a regular file.
        FileTooLarge: if it exceeds the limit on one result.
        FilesNotText: if it is not UTF-8.
        EgressRefused: if the part begins or ends inside a known secret.

    Example:
        ``{"path": "reports/may.csv"}``
    """
    return await read_file(params, ctx)


@op(
    "files.lines",
    requires="files",
    scope=_inspecting,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "first", "count", "max_bytes"),
    egress=False,
)
async def lines(params: FileLinesParams, ctx: OpContext) -> FileLinesResult:
    """Read some lines of a file of any size. A line ends with a line feed.

    Args:
        params: `first` is the number of the first line, `count` and `max_bytes` limit the lines.
        ctx: the op's context.

    Returns:
        The lines as bytes, and the number of the next line if there is one.

    Raises:
        FileMissing: if the file does not exist.
        FileRefused: if it is not a regular file.
        EgressRefused: if the lines begin or end inside a known secret.

    Example:
        ``{"path": "reports/may.csv", "first": 100, "count": 20}``
    """
    return await read_lines(params, ctx)


@op(
    "files.list",
    requires="files",
    scope=_listing,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "after", "limit", "hidden"),
    egress=False,
)
async def list_(params: FileListParams, ctx: OpContext) -> FileListResult:
    """List the names in a folder, sorted, in pages.

    Args:
        params: `path` is the folder; `limit` and `after` select a page; `hidden` includes names that begin with a dot.
        ctx: the op's context.

    Returns:
        The name, kind, size and time of each entry, and `next` if there are more.

    Raises:
        FileMissing: if the folder does not exist.
        FileRefused: if it is not a folder.

    Example:
        ``{"path": "reports"}``
    """
    return await list_entries(params, ctx)


@op(
    "files.find",
    requires="files",
    scope=_listing,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "pattern", "limit", "hidden"),
    egress=False,
)
async def find(params: FileFindParams, ctx: OpContext) -> FileFindResult:
    """Find files and folders by a pattern, in a folder and all its subfolders. Links are not followed.

    Args:
        params: `pattern` is matched against paths relative to `path`: `*` and `?` within a name, `**` for any folders.
        ctx: the op's context.

    Returns:
        The matches, with paths relative to `path`.

    Raises:
        FileMissing: if the folder does not exist.
        FilesTooMany: if it contains too many names to search.

    Example:
        ``{"pattern": "**/*.csv", "path": "reports"}``
    """
    return await find_entries(params, ctx)


@op(
    "files.search",
    requires="files",
    scope=_listing,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "pattern", "literal", "ignore_case", "below", "names", "hidden", "ignored", "context", "limit"),
    egress=False,
)
async def search(params: FileSearchParams, ctx: OpContext) -> FileSearchResult:
    """Find the lines that match a pattern, in the text files in a folder and all its subfolders.

    Links are not followed. Folders are visited in the order of their names, and their files before their subfolders.

    Args:
        params: `pattern` is a regular expression of RE2, which takes linear time; `below`, `names`, `hidden` and
            `ignored` select files; `context` and `limit` limit the result.
        ctx: the op's context.

    Returns:
        The lines with their paths and numbers, and why there may be more.

    Raises:
        FileMissing: if the folder, or what `below` names, does not exist.
        FilesPatternInvalid: if the pattern is not valid.

    Example:
        ``{"path": "/srv/project", "pattern": "def main", "names": ["*.py"]}``
    """
    return await search_lines(params, ctx)


@op(
    "files.stat",
    requires="files",
    scope=_inspecting,
    level=Level.MONITORED,
    needs=_READ,
    record=("path", "digest"),
    egress=False,
)
async def stat(params: FileStatParams, ctx: OpContext) -> FileStatus:
    """Return the metadata of a path: kind, size, time, permissions, and the digest if requested.

    Args:
        params: `path`, and `digest` for the SHA-256 of a file.
        ctx: the op's context.

    Returns:
        The metadata.

    Raises:
        FileMissing: if the path does not exist.
        FileTooLarge: if the digest is requested, and the file exceeds the maximum size of a file.

    Example:
        ``{"path": "reports/may.csv", "digest": true}``
    """
    return await file_status(params, ctx)


@op(
    "files.write",
    requires="files",
    scope=_with_blob,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("path", "blob", "overwrite", "append", "expected"),
    preview=preview_write,
    reconcile=reconcile_change,
    undo=undo_change,
    egress=False,
)
async def write(params: FileWriteParams, ctx: OpContext) -> FileWriteResult:
    """Write a file atomically, accessible by its owner only. Missing folders are created.

    Args:
        params: `content` is text or bytes, or `blob` names a blob; `overwrite` allows replacing a file, `append`
            appends to one, and `expected` is the SHA-256 that an existing file must have to be replaced.
        ctx: the op's context.

    Returns:
        The size and digest of the whole file.

    Raises:
        FileTaken: if a file exists and must not be replaced.
        FileChanged: if it has another digest than expected.
        FileRefused: if it is not a regular file, or the path leaves its folder.
        FileFailed: on an I/O error, such as a full disk; nothing was changed.
        EgressRefused: if the content contains a known secret.

    Example:
        ``{"path": "reports/may.csv", "content": "day,count"}``
    """
    return await write_file(params, ctx)


@op(
    "files.copy",
    requires="files",
    scope=_copying,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("path", "target", "overwrite"),
    preview=preview_copy,
    reconcile=reconcile_change,
    undo=undo_change,
    egress=False,
)
async def copy(params: FileCopyParams, ctx: OpContext) -> FileWriteResult:
    """Copy a file atomically.

    Args:
        params: `path` is the file, `target` the path of the copy; `overwrite` allows replacing a file.
        ctx: the op's context.

    Returns:
        The path, size and digest of the copy.

    Raises:
        FileMissing: if the file does not exist.
        FileTaken: if a file at the target exists and must not be replaced.
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
    needs=_WRITE,
    record=("path", "target", "overwrite", "expected"),
    preview=preview_move,
    reconcile=reconcile_move,
    undo=undo_move,
    egress=False,
)
async def move(params: FileMoveParams, ctx: OpContext) -> FileMoveResult:
    """Move a file to another path on the same disk. Missing folders are created.

    Args:
        params: `path` is the file, `target` its new path; `overwrite` allows replacing a file, and `expected` is the
            SHA-256 that the file must have.
        ctx: the op's context.

    Returns:
        Both paths, the size and the digest.

    Raises:
        FileMissing: if the file does not exist.
        FileTaken: if a file at the target exists and must not be replaced.
        FileChanged: if the file has another digest than expected.
        FileRefused: if one of them is not a regular file, or they are on different disks.

    Example:
        ``{"path": "reports/may.csv", "target": "reports/old/may.csv"}``
    """
    return await move_file(params, ctx)


@op(
    "files.delete",
    requires="files",
    scope=_changing,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("path", "expected"),
    preview=preview_delete,
    reconcile=reconcile_change,
    undo=undo_change,
    egress=False,
)
async def delete(params: FileDeleteParams, ctx: OpContext) -> FileDeleteResult:
    """Delete a file or an empty folder.

    Args:
        params: `path`, with a trailing `/` for a folder; `expected` is the SHA-256 that a file must have.
        ctx: the op's context.

    Returns:
        The path, kind and size of what was deleted.

    Raises:
        FileMissing: if it does not exist.
        FileChanged: if the file has another digest than expected.
        FileRefused: if the folder is not empty, or it is neither a file nor a folder.

    Example:
        ``{"path": "reports/may.csv"}``
    """
    return await delete_path(params, ctx)


@op(
    "files.make_folder",
    requires="files",
    scope=_making,
    level=Level.CONTROLLED,
    needs=_WRITE,
    idempotent=True,
    record=("path",),
    preview=preview_folder,
    reconcile=reconcile_folder,
    undo=undo_folder,
    egress=False,
)
async def make_folder(params: FolderMakeParams, ctx: OpContext) -> FolderMakeResult:
    """Create a folder and its parents, accessible by their owner only. An existing folder is not changed.

    Args:
        params: `path`.
        ctx: the op's context.

    Returns:
        Whether it was created.

    Raises:
        FileTaken: if a file of that name exists.
        FileRefused: if a parent is a file or a link.

    Example:
        ``{"path": "reports/2026"}``
    """
    return await create_folder(params, ctx)


@op(
    "files.restore",
    requires="files",
    internal=True,
    scope=_restoring,
    level=Level.CONTROLLED,
    needs=_WRITE,
    record=("path", "blob", "expected", "permissions"),
    preview=preview_restore,
    reconcile=reconcile_change,
    undo=undo_change,
    egress=False,
)
async def restore(params: FileRestoreParams, ctx: OpContext) -> FileRestoreResult:
    """Restore the previous content of a file if it was not changed since. `undo` uses this op.

    Args:
        params: `blob` is the previous content (if omitted, the file is removed); `expected` is the SHA-256 of the
            current file (if omitted, no file may exist); `permissions` are the previous permission bits.
        ctx: the op's context.

    Returns:
        The current file.

    Raises:
        FileChanged: if the current file has another digest than expected.
        FileTaken: if a file exists and `expected` is omitted.
        BlobMissing: if the previous content is not kept any more.

    Example:
        ``{"path": "reports/may.csv", "expected": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    return await restore_file(params, ctx)
