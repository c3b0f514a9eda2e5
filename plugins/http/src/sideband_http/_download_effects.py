"""The same for downloads: the file that was there before is kept, so that a download can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import ConfinedFolder, FileMissing, normal_path

from ._content import target_of
from ._models import Download, DownloadParams, FetchBlobParams
from ._url import parse_url

__all__ = [
    "download_folder",
    "note_download",
    "preview_download",
    "preview_fetch_blob",
    "reconcile_download",
    "undo_download",
    "undo_fetch_blob",
]

_FILES = "files"
_LARGEST_KEPT = 16 * 1024 * 1024


def download_folder(ctx: OpContext) -> ConfinedFolder:
    """Where downloads go."""
    return ConfinedFolder(Path(ctx.home) / _FILES)


async def preview_download(params: DownloadParams, ctx: OpContext) -> str:
    """What `http.download` would do."""
    path = normal_path(params.path)
    try:
        there = (await download_folder(ctx).entry(path)).size
    except FileMissing:
        return f"{_fetching(params, ctx)} into the new file `{path}`"
    fate = "which it would replace" if params.overwrite else "which it would not replace: it would fail"
    return f"{_fetching(params, ctx)} into the file `{path}`, where there are {there:,} bytes, {fate}"


async def preview_fetch_blob(params: FetchBlobParams, ctx: OpContext) -> str:
    """What `http.fetch_blob` would do."""
    return f"{_fetching(params, ctx)} into a blob"


def _fetching(params: DownloadParams | FetchBlobParams, ctx: OpContext) -> str:
    auth = "" if params.auth is None else f", credential `{params.auth}`,"
    return f"GET {target_of(parse_url(params.url), params, ctx).url}{auth}"


async def note_download(folder: ConfinedFolder, path: str, answer: Download, ctx: OpContext) -> None:
    """Note what will be there and what is there now, which is kept as a blob if it is not too large."""
    before: dict[str, Any] | None = None
    try:
        async with folder.reading(path) as reader:
            before = {"sha256": await reader.digest(), "size": reader.entry.size}
            before["permissions"] = reader.entry.permissions
            before["kept"] = reader.entry.size <= _LARGEST_KEPT
            if before["kept"]:
                async with ctx.blobs.create(max_bytes=_LARGEST_KEPT) as new:
                    while piece := await reader.read():
                        await new.write(piece)
                    before["sha256"] = (await new.commit()).sha256
    except FileMissing:
        pass
    # The server's header is left out: a note is small.
    await ctx.note({"path": path, "before": before, "answer": {**answer, "headers": {}}})


async def reconcile_download(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Look what is in the file."""
    if not recorded.note:
        return Reconciled(happened=False)
    before, answer = recorded.note["before"], recorded.note["answer"]
    now = await _digest_now(ctx, recorded.note["path"])
    if now == answer["sha256"]:
        return Reconciled(happened=True, result=answer)
    return Reconciled(happened=False) if now == (before and before["sha256"]) else None


async def undo_download(recorded: Recorded, ctx: OpContext) -> Undo:
    """Put back the file that was there before, or remove the new one, unless it was changed since."""
    if not recorded.note:
        return Undo(remains=("no file was written",))
    path, before, after = recorded.note["path"], recorded.note["before"], recorded.note["answer"]["sha256"]
    now = await _digest_now(ctx, path)
    if now == (before and before["sha256"]):
        return Undo(remains=(f"`{path}` is as it was before: there is nothing to take back",))
    if now != after:
        return Undo(remains=(f"`{path}` was changed again since: taking the download back would undo that too",))
    if before is None:
        text = f"remove `{path}`, which was not there before"
        return Undo(steps=(UndoStep("files.restore", {"path": path, "expected": after}, text),))
    if not before["kept"]:
        return Undo(remains=(f"what `{path}` was before was not kept: it had {before['size']:,} bytes",))
    params = {"path": path, "blob": before["sha256"], "expected": after, "permissions": before["permissions"]}
    text = f"put back `{path}` ({before['size']:,} bytes) as it was"
    return Undo(steps=(UndoStep("files.restore", params, text),))


async def undo_fetch_blob(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as it is called
    """Say what stays."""
    return Undo(remains=("the blob stays, since others may use it by now: `blobs.delete` removes it",))


async def _digest_now(ctx: OpContext, path: str) -> str | None:
    try:
        return await download_folder(ctx).digest(path)
    except FileMissing:
        return None
