"""Reconciliation of effects whose outcome is unknown, and undo."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import FileMissing, FileRefused, FileReplaced

from ._addresses._url import parse_url
from ._exchange._downloads import download_folder
from ._exchange._hops import exchange, time_limit
from ._models import Download
from ._request._bodies import BlobBody, Body
from ._request._plan import RequestPlan
from ._response._arrival import reading
from ._state import HttpState

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_NOTED_METHODS = frozenset({"PUT", "DELETE"})
_GONE = frozenset({404, 410})
_NOTHING_TO_UNDO = "the request only read data: nothing to undo"
_RECONCILE_SECONDS = 20.0
_MAX_COMPARED_BYTES = 256 * 1024 * 1024
_MAX_HASHED_INLINE = 1024 * 1024
_MAX_KEPT_BYTES = 16 * 1024 * 1024


async def note_change(plan: RequestPlan, ctx: OpContext) -> None:
    """Note what reconciliation needs to ask the server for the outcome, for methods that allow this."""
    if plan.method in _NOTED_METHODS:
        sha256 = None if plan.method == "DELETE" else await _digest(plan.content)
        note = {"method": plan.method, "url": plan.target.url, "auth": plan.auth, "sha256": sha256}
        await ctx.note({**note, "http2": plan.http2})


async def _digest(body: Body | None) -> str:
    if isinstance(body, BlobBody):
        return body.blob.sha256
    content = body or b""
    if len(content) <= _MAX_HASHED_INLINE:
        return hashlib.sha256(content).hexdigest()
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).hexdigest())


async def reconcile_reading(recorded: Recorded, ctx: OpContext) -> Reconciled | None:  # noqa: ARG001  required signature
    """Report that a read may be repeated."""
    return Reconciled(happened=False, repeatable=True)


async def reconcile_request(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Ask the server for the outcome, or rely on the idempotency key. Return ``None`` if the outcome is unknown.

    A DELETE happened if the resource no longer exists. A PUT happened if the resource has the content that was sent; if
    the content differs, it may have changed since, so the outcome is unknown.
    """
    if recorded.note.get("method") in _NOTED_METHODS:
        return await _reconcile_change(recorded.note, ctx)
    if _method_of(recorded) in _NOTED_METHODS:
        return Reconciled(happened=False)  # the note is written before the request is sent
    if recorded.params.get("idempotency_key") is not None or recorded.params.get("method") in _SAFE_METHODS:
        return Reconciled(happened=False, repeatable=True)
    return None


def _method_of(recorded: Recorded) -> str:
    method = recorded.note.get("method") or recorded.params.get("method") or recorded.op.partition(".")[2]
    return str(method).upper()


async def _reconcile_change(note: Mapping[str, Any], ctx: OpContext) -> Reconciled | None:
    status, sha256 = await _current_content(note, ctx)
    if note["method"] == "DELETE":
        if status in _GONE:
            return Reconciled(happened=True)
        return Reconciled(happened=False) if sha256 is not None else None
    if sha256 is not None and sha256 == note["sha256"]:
        return Reconciled(happened=True)
    return Reconciled(happened=False) if status in _GONE else None


async def _current_content(note: Mapping[str, Any], ctx: OpContext) -> tuple[int, str | None]:
    """Return the status of the resource, and the digest of its content if it can be read."""
    state: HttpState = ctx.state
    plan = RequestPlan(
        method="GET",
        target=parse_url(note["url"]),
        user_agent=state.user_agent,
        auth=note["auth"],
        timeout=_RECONCILE_SECONDS,
        http2=note["http2"],
        follow_redirects=False,
    )
    digest = hashlib.sha256()
    with time_limit(plan):
        async with exchange(plan, state.connections, ctx) as arrival:
            if not arrival.response.is_success:
                return arrival.response.status_code, None
            async with reading(arrival, _MAX_COMPARED_BYTES) as pieces:
                async for piece in pieces:
                    digest.update(piece)
            return arrival.response.status_code, digest.hexdigest()


async def undo_reading(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  required signature
    """Report that a read needs no undo."""
    return Undo(remains=(_NOTHING_TO_UNDO,))


async def undo_request(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  required signature
    """Report that a change on a server cannot be undone."""
    if recorded.params.get("method") in _SAFE_METHODS:
        return Undo(remains=(_NOTHING_TO_UNDO,))
    method = _method_of(recorded)
    url = recorded.note.get("url") or recorded.params.get("url", "the server")
    return Undo(remains=(f"cannot undo the changes of {method} {url} on the server",))


async def note_download(path: str, folders: Sequence[str], result: Download, ctx: OpContext) -> None:
    """Note the folders on the path, the result, and the existing file, which is kept as a blob up to a size limit."""
    before: dict[str, Any] | None = None
    try:
        async with download_folder(ctx, folders).reading(path) as reader:
            before = {"sha256": await reader.digest(), "size": reader.entry.size}
            before["permissions"] = reader.entry.permissions
            before["kept"] = reader.entry.size <= _MAX_KEPT_BYTES
            if before["kept"]:
                async with ctx.blobs.create(max_bytes=_MAX_KEPT_BYTES) as new:
                    while piece := await reader.read():
                        await new.write(piece)
                    before["sha256"] = (await new.commit()).sha256
    except FileMissing:
        pass
    # Without the response headers, because notes must be small.
    await ctx.note({"path": path, "folders": folders, "before": before, "answer": {**result, "headers": {}}})


async def reconcile_download(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Compare the file with the recorded digests."""
    if not recorded.note:
        return Reconciled(happened=False)
    before, answer = recorded.note["before"], recorded.note["answer"]
    now = await _digest_now(ctx, recorded.note)
    if now == answer["sha256"]:
        return Reconciled(happened=True, result=answer)
    return Reconciled(happened=False) if now == (before and before["sha256"]) else None


async def undo_download(recorded: Recorded, ctx: OpContext) -> Undo:
    """Restore the previous file, or remove the new one, unless it has changed since or is in another folder."""
    if not recorded.note:
        return Undo(remains=("no file was written",))
    path, before, after = recorded.note["path"], recorded.note["before"], recorded.note["answer"]["sha256"]
    try:
        now = await _digest_now(ctx, recorded.note)
    except (FileReplaced, FileRefused) as error:
        return Undo(remains=(error.message,))
    if now == (before and before["sha256"]):
        return Undo(remains=(f"`{path}` already has its previous content: nothing to undo",))
    if now != after:
        return Undo(remains=(f"`{path}` has changed since: undo would discard that change",))
    return _plan_restore(recorded.note, after)


def _plan_restore(note: Mapping[str, Any], after: str) -> Undo:
    path, before = note["path"], note["before"]
    params = {"path": path, "folders": note["folders"], "expected": after}
    if before is None:
        return Undo(steps=(UndoStep("files.restore", params, f"remove `{path}`, which did not exist before"),))
    if not before["kept"]:
        return Undo(remains=(f"the previous content of `{path}` was not kept: it had {before['size']:,} bytes",))
    params |= {"blob": before["sha256"], "permissions": before["permissions"]}
    text = f"restore the previous content of `{path}` ({before['size']:,} bytes)"
    return Undo(steps=(UndoStep("files.restore", params, text),))


async def undo_fetch_blob(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  required signature
    """Report that the blob is not removed."""
    return Undo(remains=("the blob is kept, because it may be in use; `blobs.delete` removes it",))


async def _digest_now(ctx: OpContext, note: Mapping[str, Any]) -> str | None:
    """Return the current digest of a file in the recorded folder, or ``None`` if it does not exist."""
    try:
        # without recorded folders, no folder is the recorded one
        return await download_folder(ctx, note.get("folders", ())).digest(note["path"])
    except FileMissing:
        return None
