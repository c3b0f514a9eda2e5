"""What became of effects that nobody saw end, and what can be taken back of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import anyio
from sideband.ops import OpContext, Reconciled, Recorded, Undo, UndoStep
from sideband_confined_files import ConfinedFolder, FileMissing

from ._addresses._url import parse_url
from ._exchange._downloads import download_folder
from ._exchange._hops import exchange, time_limit
from ._models import Download
from ._request._bodies import BlobBody, Body
from ._request._plan import RequestPlan
from ._response._arrival import reading
from ._state import HttpState

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_NOTED = frozenset({"PUT", "DELETE"})
_GONE = frozenset({404, 410})
_ASKED_SECONDS = 20.0
_LARGEST_COMPARED = 256 * 1024 * 1024
_DIGESTED_AT_ONCE = 1024 * 1024
_LARGEST_KEPT = 16 * 1024 * 1024


async def note_change(plan: RequestPlan, ctx: OpContext) -> None:
    """Note what it takes to ask the server later whether it was done: for methods where asking tells."""
    if plan.method in _NOTED:
        sha256 = None if plan.method == "DELETE" else await _digest(plan.content)
        note = {"method": plan.method, "url": plan.target.url, "auth": plan.auth, "sha256": sha256}
        await ctx.note({**note, "http2": plan.http2})


async def _digest(body: Body | None) -> str:
    if isinstance(body, BlobBody):
        return body.blob.sha256
    content = body or b""
    if len(content) <= _DIGESTED_AT_ONCE:
        return hashlib.sha256(content).hexdigest()
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).hexdigest())


async def reconcile_reading(recorded: Recorded, ctx: OpContext) -> Reconciled | None:  # noqa: ARG001  as it is called
    """Reading may be done again."""
    return Reconciled(happened=False, repeatable=True)


async def reconcile_request(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Ask the server, or count on it to recognise the key; ``None`` if neither tells.

    What was to be deleted and is gone has been deleted. What was to be replaced and reads like what was sent has been
    replaced; if it reads otherwise, it may have been changed since, and nobody knows.
    """
    if recorded.note.get("method") in _NOTED:
        return await _asked(recorded.note, ctx)
    if recorded.params.get("idempotency_key") is not None or recorded.params.get("method") in _READING:
        return Reconciled(happened=False, repeatable=True)
    return None


async def _asked(note: Mapping[str, Any], ctx: OpContext) -> Reconciled | None:
    status, sha256 = await _look(note, ctx)
    if note["method"] == "DELETE":
        if status in _GONE:
            return Reconciled(happened=True)
        return Reconciled(happened=False) if sha256 is not None else None
    if sha256 is not None and sha256 == note["sha256"]:
        return Reconciled(happened=True)
    return Reconciled(happened=False) if status in _GONE else None


async def _look(note: Mapping[str, Any], ctx: OpContext) -> tuple[int, str | None]:
    """The status of what is there now, and its digest if it can be read."""
    state: HttpState = ctx.state
    plan = RequestPlan(
        method="GET",
        target=parse_url(note["url"]),
        user_agent=state.user_agent,
        auth=note["auth"],
        timeout=_ASKED_SECONDS,
        http2=note["http2"],
        follow_redirects=False,
    )
    digest = hashlib.sha256()
    with time_limit(plan):
        async with exchange(plan, state.connections, ctx) as arrival:
            if not arrival.response.is_success:
                return arrival.response.status_code, None
            async with reading(arrival, _LARGEST_COMPARED) as pieces:
                async for piece in pieces:
                    digest.update(piece)
            return arrival.response.status_code, digest.hexdigest()


async def undo_reading(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as it is called
    """There is nothing to take back."""
    return Undo(remains=("it was only read: there is nothing to take back",))


async def undo_request(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  as it is called
    """Say that nothing can be taken back."""
    if recorded.params.get("method") in _READING:
        return Undo(remains=("it was only read: there is nothing to take back",))
    method = recorded.note.get("method") or recorded.params.get("method") or recorded.op.partition(".")[2].upper()
    url = recorded.note.get("url") or recorded.params.get("url", "the server")
    return Undo(remains=(f"what {method} {url} has changed there is the server's: nothing here can take it back",))


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
