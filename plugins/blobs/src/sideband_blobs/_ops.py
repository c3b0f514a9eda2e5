"""The ops `blobs.put`, `blobs.get`, `blobs.stat`, `blobs.list` and `blobs.delete`."""

from __future__ import annotations

import hashlib

from anyio import to_thread
from sideband.blobs import BlobMissing, BlobScope, BlobTooLarge
from sideband.ops import Level, OpContext, op

from ._errors import BlobsFull
from ._models import (
    BlobDeleteParams,
    BlobDeleteResult,
    BlobGetParams,
    BlobGetResult,
    BlobInfo,
    BlobListParams,
    BlobListResult,
    BlobPutParams,
    BlobStatParams,
)
from ._preview import preview_delete, preview_put
from ._reading import read_part
from ._state import Blobs
from ._undo import reconcile_delete, reconcile_put, undo_delete, undo_put


def _reading(params: BlobGetParams | BlobStatParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="read")


def _writing(params: BlobPutParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="write")


def _listing(params: BlobListParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
    return BlobScope(mode="list")


def _deleting(params: BlobDeleteParams) -> BlobScope:  # noqa: ARG001  as the broker calls it
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
async def put(params: BlobPutParams, ctx: OpContext) -> BlobInfo:
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
    return BlobInfo(sha256=blob.sha256, size=blob.size)


@op(
    "blobs.get",
    requires="blobs",
    scope=_reading,
    level=Level.MONITORED,
    record=("sha256", "kind", "offset", "length"),
)
async def get(params: BlobGetParams, ctx: OpContext) -> BlobGetResult:
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
    return await read_part(params, ctx)


@op("blobs.stat", requires="blobs", scope=_reading, level=Level.MONITORED, record=("sha256",))
async def stat(params: BlobStatParams, ctx: OpContext) -> BlobInfo:
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
    return BlobInfo(sha256=found.sha256, size=found.size)


@op("blobs.list", requires="blobs", scope=_listing, level=Level.MONITORED, record=("limit",))
async def list_(params: BlobListParams, ctx: OpContext) -> BlobListResult:
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
    kept = [BlobInfo(sha256=one.sha256, size=one.size) for one in found[:limit]]
    return BlobListResult(blobs=kept, truncated=len(found) > limit)


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
async def delete(params: BlobDeleteParams, ctx: OpContext) -> BlobDeleteResult:
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
            return BlobDeleteResult(deleted=False)
        await ctx.note({"sha256": params.sha256, "size": found.size})
        deleted = await ctx.blobs.delete(params.sha256)
        if deleted:
            state.added(-found.size)
    return BlobDeleteResult(deleted=deleted)
