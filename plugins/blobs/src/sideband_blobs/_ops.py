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


def _reading(params: BlobGetParams | BlobStatParams) -> BlobScope:  # noqa: ARG001  required by the broker
    return BlobScope(mode="read")


def _writing(params: BlobPutParams) -> BlobScope:  # noqa: ARG001  required by the broker
    return BlobScope(mode="write")


def _listing(params: BlobListParams) -> BlobScope:  # noqa: ARG001  required by the broker
    return BlobScope(mode="list")


def _deleting(params: BlobDeleteParams) -> BlobScope:  # noqa: ARG001  required by the broker
    return BlobScope(mode="delete")


@op(
    "blobs.put",
    requires="blobs",
    scope=_writing,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    idempotent=True,
    preview=preview_put,
    reconcile=reconcile_put,
    undo=undo_put,
    egress=False,
)
async def put(params: BlobPutParams, ctx: OpContext) -> BlobInfo:
    """Store bytes or text by content; equal content is stored once.

    Args:
        params: `content` is text or bytes; alternatively, `base64` is the content as base64.
        ctx: the op's context.

    Returns:
        The digest, which is the name of the blob, and the size.

    Raises:
        BlobTooLarge: if it exceeds the maximum size of a blob.
        BlobsFull: if the total size of all blobs would exceed the limit.
        BlobStorage: on an I/O error, such as a full disk.
        EgressRefused: if it contains a known secret.

    Example:
        ``{"content": "a long text"}``
    """
    data = params.data
    state: Blobs = ctx.state
    if len(data) > state.config.max_blob_bytes:
        raise BlobTooLarge(state.config.max_blob_bytes)
    # run in a thread, since searching for many secrets takes time
    await to_thread.run_sync(ctx.check_egress, None, {"content": data})
    sha256 = hashlib.sha256(data).hexdigest()
    async with state.lock:
        exists = await ctx.blobs.find(sha256) is not None
        if not exists:
            total = await state.total_with(len(data), ctx)
            if total > state.config.max_total_bytes:
                raise BlobsFull(total, state.config.max_total_bytes)
        await ctx.note({"sha256": sha256, "size": len(data), "there": exists})
        blob = await ctx.blobs.put(data)
        if not exists:
            state.added(blob.size)
    return BlobInfo(sha256=blob.sha256, size=blob.size)


@op(
    "blobs.get",
    requires="blobs",
    scope=_reading,
    level=Level.MONITORED,
    needs={"mode": ("read",)},
    record=("sha256", "kind", "offset", "length"),
    egress=False,
)
async def get(params: BlobGetParams, ctx: OpContext) -> BlobGetResult:
    """Return the content of a blob or a part of it, after verifying its digest.

    Args:
        params: `sha256` is the digest; `kind` is `bytes`, `text` or `base64`; `offset` and `length` are in bytes.
        ctx: the op's context.

    Returns:
        The content, the size of the whole blob, and the offset of the rest if there is more.

    Raises:
        BlobMissing: if the blob does not exist.
        BlobTooLarge: if it exceeds the limit on one result.
        BlobDamaged: if its content does not match its digest.
        BlobsNotText: if it is not UTF-8.
        EgressRefused: if the part begins or ends inside a known secret.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "kind": "text"}``
    """
    return await read_part(params, ctx)


@op(
    "blobs.stat",
    requires="blobs",
    scope=_reading,
    level=Level.MONITORED,
    needs={"mode": ("read",)},
    record=("sha256",),
    egress=False,
)
async def stat(params: BlobStatParams, ctx: OpContext) -> BlobInfo:
    """Return the size of a blob.

    Args:
        params: `sha256` is the digest.
        ctx: the op's context.

    Returns:
        The digest and the size.

    Raises:
        BlobMissing: if the blob does not exist.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    found = await ctx.blobs.find(params.sha256)
    if found is None:
        raise BlobMissing(params.sha256)
    return BlobInfo(sha256=found.sha256, size=found.size)


@op(
    "blobs.list",
    requires="blobs",
    scope=_listing,
    level=Level.MONITORED,
    needs={"mode": ("list",)},
    record=("limit",),
    egress=False,
)
async def list_(params: BlobListParams, ctx: OpContext) -> BlobListResult:
    """List the blobs of the host, regardless of who stored them. Requires `blobs:mode=list`.

    Args:
        params: `limit` lowers the configured limit.
        ctx: the op's context.

    Returns:
        The digests and sizes.

    Raises:
        BlobStorage: on an I/O error.

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
    needs={"mode": ("delete",)},
    idempotent=True,
    record=("sha256",),
    preview=preview_delete,
    reconcile=reconcile_delete,
    undo=undo_delete,
    egress=False,
)
async def delete(params: BlobDeleteParams, ctx: OpContext) -> BlobDeleteResult:
    """Delete a blob permanently, regardless of who stored it. Requires `blobs:mode=delete`.

    Args:
        params: `sha256` is the digest.
        ctx: the op's context.

    Returns:
        Whether the blob existed.

    Raises:
        BlobStorage: on an I/O error.

    Example:
        ``{"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}``
    """
    state: Blobs = ctx.state
    async with state.lock:
        found = await ctx.blobs.find(params.sha256)
        if found is None:
            return BlobDeleteResult(deleted=False)
        await ctx.note({"sha256": params.sha256, "size": found.size})
        deleted = await ctx.blobs.delete(params.sha256)
        if deleted:
            state.added(-found.size)
    return BlobDeleteResult(deleted=deleted)
