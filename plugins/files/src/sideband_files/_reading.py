"""The ops that change nothing: `files.read`, `files.list`, `files.find` and `files.stat`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sideband.blobs import BlobScope
from sideband.ops import Level, OpContext, Scope, op
from sideband_confined_files import ConfinedFolder, FileMissing, FileReader, FileTooLarge, FolderEntry

from ._errors import FilesNotText
from ._models import (
    Entries,
    Entry,
    FindParams,
    Found,
    ListParams,
    Read,
    ReadParams,
    StatParams,
    Status,
)
from ._places import Target, locate
from ._search import search
from ._state import Files

__all__ = ["find", "list_", "read", "stat"]

_PIECE = 1024 * 1024
# How much on either side of a cut is searched for a secret that it would divide.
_AROUND = 64 * 1024


def _reading(params: ReadParams) -> Iterable[Scope]:
    yield locate(params.path).scope("read")
    if params.kind == "blob":
        yield BlobScope(mode="write")


@op("files.read", requires="files", scope=_reading, level=Level.MONITORED, record=("path", "kind", "offset", "length"))
async def read(params: ReadParams, ctx: OpContext) -> Read:
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
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read")
        async with files.folder(ctx, target).reading(target.path) as reader:
            if params.kind == "blob":
                return await _as_blob(params, ctx, target, reader)
            return await _as_content(params, ctx, target, reader, files.config.max_read_bytes)


async def _as_blob(params: ReadParams, ctx: OpContext, target: Target, reader: FileReader) -> Read:
    files: Files = ctx.state
    size = reader.entry.size
    left = max(0, size - params.offset) if params.length is None else params.length
    if left > files.config.max_file_bytes:
        raise FileTooLarge(target.name, left, files.config.max_file_bytes)
    await _check_cuts(ctx, reader, params.offset, min(size, params.offset + left))
    reader.seek(params.offset)
    async with ctx.blobs.create(max_bytes=files.config.max_file_bytes) as new:
        while left and (piece := await reader.read(min(left, _PIECE))):
            await new.write(piece)
            left -= len(piece)
        blob = await new.commit()
    end = params.offset + blob.size
    return Read(path=target.name, size=size, next=end if end < size else None, sha256=blob.sha256)


async def _check_cuts(ctx: OpContext, reader: FileReader, *places: int) -> None:
    """Refuse a part at whose beginning or end a secret would be cut in two."""
    for place in (one for one in places if 0 < one < reader.entry.size):
        around = max(0, place - _AROUND)
        reader.seek(around)
        before = await _exactly(reader, place - around)
        ctx.check_cut(before, await _exactly(reader, _AROUND))


async def _exactly(reader: FileReader, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := await reader.read(size - len(data))):
        data += piece
    return data


async def _as_content(params: ReadParams, ctx: OpContext, target: Target, reader: FileReader, limit: int) -> Read:
    size = reader.entry.size
    if params.length is None and size - params.offset > limit:
        raise FileTooLarge(target.name, size, limit)
    reader.seek(params.offset)
    data = await reader.read(min(params.length or limit, limit))
    end = params.offset + len(data)
    if params.kind == "bytes":
        content: str | bytes = data
    else:
        content, left = _text(data, target.name, params.offset, last=end >= size)
        end -= left
    await _check_cuts(ctx, reader, params.offset, end)
    whole = params.offset == 0 and end >= size
    return Read(
        path=target.name,
        content=content,
        size=size,
        next=end if end < size else None,
        sha256=hashlib.sha256(data).hexdigest() if whole else None,
    )


def _text(data: bytes, name: str, offset: int, *, last: bool) -> tuple[str, int]:
    """The text, and how many bytes at the end are the beginning of a character whose rest was not read."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if not last and error.reason == "unexpected end of data" and error.start > 0:
            return data[: error.start].decode(), len(data) - error.start
        raise FilesNotText(name, offset + error.start) from None


def _listing(params: ListParams | FindParams) -> Scope:
    return locate(params.path, folder=True).scope("read", hidden=params.hidden)


@op("files.list", requires="files", scope=_listing, level=Level.MONITORED, record=("path", "after", "limit", "hidden"))
async def list_(params: ListParams, ctx: OpContext) -> Entries:
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
    files: Files = ctx.state
    limit = min(params.limit or files.config.max_entries, files.config.max_entries)
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read", folder=True, hidden=params.hidden)
        try:
            listing = await files.folder(ctx, target).list(
                target.path, limit=limit, after=params.after, hidden=params.hidden
            )
        except FileMissing:
            if target.system or target.path != ".":
                raise
            # the host's own folder is made by the first who writes
            return Entries(path=target.name, entries=[])
    entries = [_entry_of(one) for one in listing.entries]
    following = entries[-1].name if listing.truncated and entries else None
    return Entries(path=target.name, entries=entries, next=following, left_out=listing.left_out)


def _entry_of(found: FolderEntry, name: str | None = None) -> Entry:
    """An entry as it is answered."""
    return Entry(name=name or found.name, kind=found.kind, size=found.size, modified=found.modified)


@op(
    "files.find", requires="files", scope=_listing, level=Level.MONITORED, record=("path", "pattern", "limit", "hidden")
)
async def find(params: FindParams, ctx: OpContext) -> Found:
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
    files: Files = ctx.state
    limit = min(params.limit or files.config.max_entries, files.config.max_entries)
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read", folder=True, hidden=params.hidden)
        found, more = await search(
            files.folder(ctx, target),
            target,
            params.pattern,
            limit=limit,
            max_visited=files.config.max_visited,
            hidden=params.hidden,
        )
    entries = [_entry_of(one, path) for path, one in found]
    return Found(path=target.name, entries=entries, truncated=more)


def _looking(params: StatParams) -> Scope:
    return locate(params.path).scope("read")


@op("files.stat", requires="files", scope=_looking, level=Level.MONITORED, record=("path", "digest"))
async def stat(params: StatParams, ctx: OpContext) -> Status:
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
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read")
        folder = files.folder(ctx, target)
        found = await folder.entry(target.path)
        sha256 = await _digest(folder, target, files.config.max_file_bytes) if params.digest else None
    return Status(
        path=target.name,
        kind=found.kind,
        size=found.size,
        modified=found.modified,
        permissions=found.permissions,
        sha256=sha256,
    )


async def _digest(folder: ConfinedFolder, target: Target, limit: int) -> str:
    return await folder.digest(target.path, max_bytes=limit)
