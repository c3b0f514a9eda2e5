"""Previews of changes of files. They reveal the content of a file only to those who may read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from anyio import to_thread
from sideband.ops import OpContext, OpError
from sideband.rendering import quoted
from sideband_confined_files import FileMissing

from ._difference import Difference
from ._models import (
    FileCopyParams,
    FileDeleteParams,
    FileMoveParams,
    FileRestoreParams,
    FileWriteParams,
    FolderMakeParams,
)
from ._sizes import size_text
from ._state import Files
from ._targets import FileTarget, Mode

# maximum size of content that is compared by line
_MAX_COMPARED_BYTES = 1024 * 1024


async def preview_write(params: FileWriteParams, ctx: OpContext) -> str:
    """Describe what `files.write` would do, with the difference if the caller may read the file."""
    target, size = await _inspect(ctx, params.path, "write")
    new = _new_content(params)
    added = await _blob_size(ctx, params.blob) if new is None and params.blob else len(new or b"")
    if size is None:
        return f"would create {quoted(target.name)} ({size_text(added)}){await _difference(ctx, b'', new)}"
    if params.append:
        appended = await _difference(ctx, b"", new)
        return f"would append {size_text(added)} to {quoted(target.name)} ({size_text(size)}){appended}"
    text = f"would replace {quoted(target.name)} ({size_text(size)} → {size_text(added)})"
    old = await _content(ctx, target, size)
    if new is None or old is None:
        return text
    if old == new:
        return f"would leave {quoted(target.name)} unchanged: it already has this content"
    if not ctx.allows(target.scope("read")):
        return text + _line_changes(old, new)
    return text + await _difference(ctx, old, new, counted=True)


def _new_content(params: FileWriteParams) -> bytes | None:
    if isinstance(params.content, str):
        return params.content.encode()
    return params.content


async def _blob_size(ctx: OpContext, sha256: str) -> int:
    found = await ctx.blobs.find(sha256)
    return found.size if found else 0


async def _content(ctx: OpContext, target: FileTarget, size: int) -> bytes | None:
    files: Files = ctx.state
    if size > _MAX_COMPARED_BYTES:
        return None
    try:
        return await files.folder(ctx, target).read(target.path, max_bytes=_MAX_COMPARED_BYTES)
    except FileMissing:
        return None


async def _difference(ctx: OpContext, old: bytes, new: bytes | None, *, counted: bool = False) -> str:
    """Return the difference of two contents, after a line feed; nothing if they are not text, or too long."""
    if new is None or len(new) > _MAX_COMPARED_BYTES or b"\0" in old or b"\0" in new:
        return ""
    try:
        before, after = old.decode(), new.decode()
        # The host redacts previews too, but cannot recognize a secret of several lines, each with a mark.
        await to_thread.run_sync(ctx.check_egress, None, {"old content": old, "content": new})
    except (UnicodeDecodeError, OpError):
        return _line_changes(old, new) if counted else ""
    found = await to_thread.run_sync(Difference.of, before, after)
    counts = f", {_lines(found.added)} added, {found.removed} removed" if counted else ""
    shown = found.text()
    return f"{counts}\n{shown}" if shown else counts


def _lines(count: int) -> str:
    return f"{count} {'line' if count == 1 else 'lines'}"


def _line_changes(old: bytes, new: bytes) -> str:
    """Describe how many lines would be added and removed, in any order. Shows no content."""
    if len(new) > _MAX_COMPARED_BYTES or b"\0" in old or b"\0" in new:
        return ""
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    added, removed = (after - before).total(), (before - after).total()
    return f", {_lines(added)} added, {removed} removed"


async def preview_copy(params: FileCopyParams, ctx: OpContext) -> str:
    """Describe what `files.copy` would do."""
    source, size = await _inspect(ctx, params.path, "read")
    target, replaced = await _inspect(ctx, params.target, "write")
    if size is None:
        return f"would fail: {quoted(source.name)} does not exist"
    return f"would copy {quoted(source.name)} ({size_text(size)}) to {quoted(target.name)}{_replacing(replaced)}"


async def preview_move(params: FileMoveParams, ctx: OpContext) -> str:
    """Describe what `files.move` would do."""
    source, size = await _inspect(ctx, params.path, "write", folders=params.folders)
    target, replaced = await _inspect(ctx, params.target, "write", folders=params.target_folders)
    if size is None:
        return f"would fail: {quoted(source.name)} does not exist"
    return f"would move {quoted(source.name)} ({size_text(size)}) to {quoted(target.name)}{_replacing(replaced)}"


def _replacing(size: int | None) -> str:
    return "" if size is None else f", replacing the existing file ({size_text(size)})"


async def preview_delete(params: FileDeleteParams, ctx: OpContext) -> str:
    """Describe what `files.delete` would do."""
    target, size = await _inspect(ctx, params.path, "write", folders=params.folders)
    if target.folder:
        return f"would delete the folder {quoted(target.name)} if it is empty"
    if size is None:
        return f"would fail: {quoted(target.name)} does not exist"
    return f"would delete {quoted(target.name)} ({size_text(size)})"


async def preview_folder(params: FolderMakeParams, ctx: OpContext) -> str:
    """Describe what `files.make_folder` would do."""
    target, size = await _inspect(ctx, params.path, "write", folder=True, folders=params.folders)
    if size is None:
        return f"would create the folder {quoted(target.name)}"
    return f"would leave {quoted(target.name)} unchanged: it already exists"


async def preview_restore(params: FileRestoreParams, ctx: OpContext) -> str:
    """Describe what `files.restore` would do."""
    target, size = await _inspect(ctx, params.path, "write", folders=params.folders)
    now = "" if size is None else f" ({size_text(size)} now)"
    if params.blob is None:
        return f"would remove {quoted(target.name)}{now}"
    restored = size_text(await _blob_size(ctx, params.blob))
    return f"would restore {quoted(target.name)}{now} to its previous content ({restored})"


async def _inspect(
    ctx: OpContext, path: str, mode: Mode, *, folder: bool = False, folders: Sequence[str] | None = None
) -> tuple[FileTarget, int | None]:
    """Return the target of a path and its size; the size is ``None`` if it does not exist."""
    files: Files = ctx.state
    target = await files.find(ctx, path, mode, folder=folder, folders=folders)
    try:
        return target, (await files.folder(ctx, target).entry(target.path)).size
    except FileMissing:
        return target, None
