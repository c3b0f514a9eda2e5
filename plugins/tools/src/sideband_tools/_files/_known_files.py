"""The digests of the files that a session has read, so that it does not change what it has not seen."""

from __future__ import annotations

import hashlib

from sideband.tools import ToolContext


async def remember(ctx: ToolContext, path: str, sha256: str) -> None:
    """Remember the digest of a file that the session has read or written."""
    await ctx.store.put(_key(ctx, path), {"sha256": sha256}, durable=False)


async def known_digest(ctx: ToolContext, path: str) -> str | None:
    """Return the digest that a file had when the session last read or wrote it."""
    found = await ctx.store.get(_key(ctx, path))
    return None if found is None else str(found.value["sha256"])


def _key(ctx: ToolContext, path: str) -> str:
    return f"read/{ctx.session.id}/{hashlib.sha256(path.encode()).hexdigest()}"
