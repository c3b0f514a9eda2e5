"""Previews of the ops."""

from __future__ import annotations

from sideband.ops import OpContext

from ._models import BlobDeleteParams, BlobPutParams


async def preview_put(params: BlobPutParams, ctx: OpContext) -> str:  # noqa: ARG001  required by the broker
    """Describe what `blobs.put` would do."""
    return f"would store a blob of {len(params.data):,} bytes"


async def preview_delete(params: BlobDeleteParams, ctx: OpContext) -> str:
    """Describe what `blobs.delete` would do."""
    found = await ctx.blobs.find(params.sha256)
    if found is None:
        return f"would do nothing: blob `{params.sha256}` does not exist"
    return f"would permanently delete blob `{found.sha256}` ({found.size:,} bytes)"
