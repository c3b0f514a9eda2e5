"""The ops `blobs.put`, `blobs.get`, `blobs.stat`, `blobs.list` and `blobs.delete`."""

from __future__ import annotations

import base64
import hashlib

from anyio import to_thread
from sideband.blobs import BlobMissing, BlobScope, BlobTooLarge
from sideband.ops import Level, OpContext, op

from ._errors import BlobsFull, BlobsNotText
from ._models import (
    Content,
    Deleted,
    DeleteParams,
    GetParams,
    Kept,
    Listed,
    ListParams,
    PutParams,
    StatParams,
)
from ._state import Blobs
from ._taking_back import preview_delete, preview_put, reconcile_delete, reconcile_put, undo_delete, undo_put

__all__ = ["delete", "get", "list_", "put", "stat"]


# How much on either side of a part is searched for a secret that its beginning or end would divide.
_AROUND = 64 * 1024


def _reading(params: GetParams | StatParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="read")


def _writing(params: PutParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="write")


def _listing(params: ListParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="list")


def _deleting(params: DeleteParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="delete")


@op(
    "blobs.put",
    requires="blobs",
    scope=_writing,
    level=Level.CONTROLLED,
    idempotent=True,
    preview=preview_put,
    reconcile=reconcile_put,
    undo=undo_put,
)
async def put(params: PutParams, ctx: OpContext) -> Kept:
    """Keep bytes or a text, by their content: the same content is kept once.

    Args:
        params: `content` is text or bytes, or `base64` the same in letters.
        ctx: the dispatch.

    Returns:
        The digest, by which it is got back, and the size.

    Raises:
        BlobTooLarge: it is larger than a blob may be.
        BlobsFull: all blobs together would be more than the limit.
        BlobStorage: the disk is full, for instance.
        EgressRefused: it holds a known secret.

    Example:
        ``{"content": "a long text"}``
    """
    data = params.data
    state: Blobs = ctx.state
    if len(data) > state.config.max_blob_bytes:
        raise BlobTooLarge(state.config.max_blob_bytes)
    # looking for many secrets in a lot of content takes its time
    await to_thread.run_sync(ctx.check_egress, None, {"content": data})
    sha256 = hashlib.sha256(data).hexdigest()
    async with state.adding:
        there = await ctx.blobs.find(sha256) is not None
        if not there:
            total = await state.total_with(len(data), ctx)
            if total > state.config.max_total_bytes:
                raise BlobsFull(total, state.config.max_total_bytes)
        await ctx.note({"sha256": sha256, "size": len(data), "there": there})
        blob = await ctx.blobs.put(data)
        if not there:
            state.added(blob.size)
    return Kept(sha256=blob.sha256, size=blob.size)


@op(
    "blobs.get",
    requires="blobs",
    scope=_reading,
    level=Level.MONITORED,
    record=("sha256", "kind", "offset", "length"),
)
async def get(params: GetParams, ctx: OpContext) -> Content:
    """Get what is kept under a digest, or a part of it. Its digest is checked.

    Args:
        params: `sha256` is the digest; `kind` is `bytes`, `text` or `base64`; `offset` and `length` are in bytes.
        ctx: the dispatch.

    Returns:
        The content, the size of the whole, and where to go on if there is more.

    Raises:
        BlobMissing: there is none.
        BlobTooLarge: it is larger than may be answered at once.
        BlobDamaged: what is there is something else.
        BlobsNotText: it is no UTF-8.
        EgressRefused: the part begins or ends inside of a known secret.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "kind": "text"}``
    """
    state: Blobs = ctx.state
    limit = state.config.max_read_bytes
    async with ctx.blobs.open(params.sha256) as reader:
        size = reader.blob.size
        if params.length is None and size - params.offset > limit:
            raise BlobTooLarge(limit)
        end = params.offset + min(params.length or limit, limit)
        begin = max(0, params.offset - _AROUND)
        around = bytearray()
        position = 0
        # to the end, whatever was asked for: only then it is known to be what it is called
        async for piece in reader:
            around += piece[max(0, begin - position) : max(0, end + _AROUND - position)]
            position += len(piece)
    data = around[params.offset - begin : end - begin]
    following = params.offset + len(data)
    content: str | bytes = bytes(data)
    if params.kind == "base64":
        content = base64.b64encode(data).decode()
    elif params.kind == "text":
        content, left = _text(bytes(data), params, last=following >= size)
        following -= left
    for cut in (params.offset - begin, following - begin):
        ctx.check_cut(bytes(around[max(0, cut - _AROUND) : cut]), bytes(around[cut : cut + _AROUND]))
    return Content(sha256=params.sha256, size=size, content=content, next=following if following < size else None)


def _text(data: bytes, params: GetParams, *, last: bool) -> tuple[str, int]:
    """The text, and how many bytes at the end are the beginning of a character whose rest was not asked for."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if not last and error.reason == "unexpected end of data" and error.start > 0:
            return data[: error.start].decode(), len(data) - error.start
        raise BlobsNotText(params.sha256, params.offset + error.start) from None


@op("blobs.stat", requires="blobs", scope=_reading, level=Level.MONITORED, record=("sha256",))
async def stat(params: StatParams, ctx: OpContext) -> Kept:
    """Tell how large the blob with a digest is.

    Args:
        params: `sha256` is the digest.
        ctx: the dispatch.

    Returns:
        Digest and size.

    Raises:
        BlobMissing: there is none.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    found = await ctx.blobs.find(params.sha256)
    if found is None:
        raise BlobMissing(params.sha256)
    return Kept(sha256=found.sha256, size=found.size)


@op("blobs.list", requires="blobs", scope=_listing, level=Level.MONITORED, record=("limit",))
async def list_(params: ListParams, ctx: OpContext) -> Listed:
    """List the blobs of the host, whoever has put them there. Needs `blobs:mode=list`.

    Args:
        params: `limit` lowers the configured limit.
        ctx: the dispatch.

    Returns:
        Digests and sizes.

    Raises:
        BlobStorage: the file system refuses.

    Example:
        ``{"limit": 10}``
    """
    state: Blobs = ctx.state
    limit = min(params.limit or state.config.max_entries, state.config.max_entries)
    found = await ctx.blobs.list(limit=limit + 1)
    kept = [Kept(sha256=one.sha256, size=one.size) for one in found[:limit]]
    return Listed(blobs=kept, truncated=len(found) > limit)


@op(
    "blobs.delete",
    requires="blobs",
    scope=_deleting,
    level=Level.RESTRICTED,
    idempotent=True,
    record=("sha256",),
    preview=preview_delete,
    reconcile=reconcile_delete,
    undo=undo_delete,
)
async def delete(params: DeleteParams, ctx: OpContext) -> Deleted:
    """Delete a blob, whoever has put it there. It can't be taken back. Needs `blobs:mode=delete`.

    Args:
        params: `sha256` is the digest.
        ctx: the dispatch.

    Returns:
        Whether there was one.

    Raises:
        BlobStorage: the file system refuses.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    state: Blobs = ctx.state
    async with state.adding:
        found = await ctx.blobs.find(params.sha256)
        if found is None:
            return Deleted(deleted=False)
        await ctx.note({"sha256": params.sha256, "size": found.size})
        deleted = await ctx.blobs.delete(params.sha256)
        if deleted:
            state.added(-found.size)
    return Deleted(deleted=deleted)
