"""The work of the reading ops: read, list, find and stat."""

from __future__ import annotations

import hashlib

from sideband.ops import OpContext
from sideband_confined_files import FileMissing, FileReader, FileTooLarge, FolderEntry

from ._errors import FilesNotText
from ._models import (
    FileFindParams,
    FileFindResult,
    FileListEntry,
    FileListParams,
    FileListResult,
    FileReadParams,
    FileReadResult,
    FileStatParams,
    FileStatus,
)
from ._patterns import search
from ._state import Files
from ._targets import FileTarget

_CHUNK = 1024 * 1024
# how many bytes on either side of a boundary are searched for a secret that it would split
_WINDOW = 64 * 1024


async def read_file(params: FileReadParams, ctx: OpContext) -> FileReadResult:
    """Read a file or a part of it."""
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read")
        async with files.folder(ctx, target).reading(target.path) as reader:
            if params.kind == "blob":
                return await _as_blob(params, ctx, target, reader)
            return await _as_content(params, ctx, target, reader, files.config.max_read_bytes)


async def _as_blob(params: FileReadParams, ctx: OpContext, target: FileTarget, reader: FileReader) -> FileReadResult:
    files: Files = ctx.state
    size = reader.entry.size
    remaining = max(0, size - params.offset) if params.length is None else params.length
    if remaining > files.config.max_file_bytes:
        raise FileTooLarge(target.name, remaining, files.config.max_file_bytes)
    await check_cuts(ctx, reader, params.offset, min(size, params.offset + remaining))
    reader.seek(params.offset)
    async with ctx.blobs.create(max_bytes=files.config.max_file_bytes) as new:
        while remaining and (chunk := await reader.read(min(remaining, _CHUNK))):
            await new.write(chunk)
            remaining -= len(chunk)
        blob = await new.commit()
    end = params.offset + blob.size
    return FileReadResult(path=target.name, size=size, next=end if end < size else None, sha256=blob.sha256)


async def check_cuts(ctx: OpContext, reader: FileReader, *positions: int) -> None:
    """Reject a part that begins or ends inside a secret."""
    for position in (one for one in positions if 0 < one < reader.entry.size):
        start = max(0, position - _WINDOW)
        reader.seek(start)
        before = await _exactly(reader, position - start)
        ctx.check_cut(before, await _exactly(reader, _WINDOW))


async def _exactly(reader: FileReader, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := await reader.read(size - len(data))):
        data += chunk
    return data


async def _as_content(
    params: FileReadParams, ctx: OpContext, target: FileTarget, reader: FileReader, limit: int
) -> FileReadResult:
    size = reader.entry.size
    if params.length is None and size - params.offset > limit:
        raise FileTooLarge(target.name, size, limit)
    reader.seek(params.offset)
    data = await reader.read(min(params.length or limit, limit))
    end = params.offset + len(data)
    if params.kind == "bytes":
        content: str | bytes = data
    else:
        content, remaining = _text(data, target.name, params.offset, last=end >= size)
        end -= remaining
    await check_cuts(ctx, reader, params.offset, end)
    whole = params.offset == 0 and end >= size
    return FileReadResult(
        path=target.name,
        content=content,
        size=size,
        next=end if end < size else None,
        sha256=hashlib.sha256(data).hexdigest() if whole else None,
    )


def _text(data: bytes, name: str, offset: int, *, last: bool) -> tuple[str, int]:
    """Return the text, and the number of bytes of an incomplete character at its end."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if not last and error.reason == "unexpected end of data" and error.start > 0:
            return data[: error.start].decode(), len(data) - error.start
        raise FilesNotText(name, offset + error.start) from None


async def list_entries(params: FileListParams, ctx: OpContext) -> FileListResult:
    """List the names in a folder, sorted, in pages."""
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
            # the host's own folder is created by the first write
            return FileListResult(path=target.name, entries=[])
    entries = [_entry_of(one) for one in listing.entries]
    following = entries[-1].name if listing.truncated and entries else None
    return FileListResult(path=target.name, entries=entries, next=following, left_out=listing.left_out)


def _entry_of(found: FolderEntry, name: str | None = None) -> FileListEntry:
    """Convert an entry to its form in the result."""
    return FileListEntry(name=name or found.name, kind=found.kind, size=found.size, modified=found.modified)


async def find_entries(params: FileFindParams, ctx: OpContext) -> FileFindResult:
    """Find files and folders by a pattern, in a folder and all its subfolders."""
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
    return FileFindResult(path=target.name, entries=entries, truncated=more)


async def file_status(params: FileStatParams, ctx: OpContext) -> FileStatus:
    """Return the metadata of a path."""
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read")
        folder = files.folder(ctx, target)
        found = await folder.entry(target.path)
        limit = files.config.max_file_bytes
        sha256 = await folder.digest(target.path, max_bytes=limit) if params.digest else None
    return FileStatus(
        path=target.name,
        kind=found.kind,
        size=found.size,
        modified=found.modified,
        permissions=found.permissions,
        sha256=sha256,
    )
