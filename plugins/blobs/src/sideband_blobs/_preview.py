"""What the ops would do, as a sentence."""

from __future__ import annotations

from sideband.ops import OpContext

from ._models import BlobDeleteParams, BlobPutParams


async def preview_put(params: BlobPutParams, ctx: OpContext) -> str:  # noqa: ARG001  as the broker calls it
    """What `blobs.put` would do."""
    return f"would keep {len(params.data):,} bytes as a blob"


async def preview_delete(params: BlobDeleteParams, ctx: OpContext) -> str:
    """What `blobs.delete` would do."""
    found = await ctx.blobs.find(params.sha256)
    if found is None:
        return f"would do nothing: there is no blob `{params.sha256}`"
    return f"would delete the blob `{found.sha256}` ({found.size:,} bytes) for good"
