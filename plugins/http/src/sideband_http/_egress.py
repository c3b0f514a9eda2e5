"""No known secret leaves for where it is not bound, and none in a URL: those end up in logs and histories."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from functools import partial
from urllib.parse import unquote, unquote_plus

import anyio
from sideband.ops import EgressRefused, OpContext

from ._bodies import BlobBody, Body
from ._url import Target

__all__ = ["check_body", "check_headers_leaving", "check_stream", "check_url"]

# Searching this much takes less time than handing it to a thread.
_SEARCHED_AT_ONCE = 262_144
# The longest secret has 64 KiB, and three times that percent-encoded.
_OVERLAP = 262_144


def check_url(target: Target, method: str, ctx: OpContext) -> None:
    """Check what is told to name servers, proxies and everybody who sees the URL.

    Raises:
        EgressRefused: it holds a secret, as it stands or once decoded.
    """
    url = target.url
    ctx.check_egress(None, {"request line": "\n".join({method, url, unquote(url), unquote_plus(url)})})


def check_headers_leaving(headers: Mapping[str, str], target: Target, ctx: OpContext) -> None:
    """Check headers and cookies. The credential that was resolved for this origin is bound to it, and passes.

    Raises:
        EgressRefused: one holds a secret that is not bound to the origin.
    """
    lines = {f"header `{name}`": f"{name}: {value}" for name, value in headers.items()}
    try:
        # One search for all of them, since each takes longer the more secrets there are.
        ctx.check_egress(target.origin, {"headers": "\n".join(lines.values())})
    except EgressRefused:
        ctx.check_egress(target.origin, lines)


async def check_body(content: Body | None, target: Target, ctx: OpContext) -> None:
    """Check a body.

    Raises:
        EgressRefused: it holds a secret that is not bound to the origin.
    """
    if isinstance(content, BlobBody):
        async with content.reading() as pieces:
            await check_stream(pieces, target, ctx)
    elif content:
        await _search(content, target, ctx)


async def check_stream(pieces: AsyncIterable[bytes], target: Target, ctx: OpContext) -> None:
    """Check a body that is too large to be held. To be done before it is sent, so that no half of a secret is.

    Args:
        pieces: all of it. What is sent afterwards must be the same.
        target: where it is about to go.
        ctx: who sends it.

    Raises:
        EgressRefused: it holds a secret that is not bound to the origin.
    """
    window = bytearray()
    async for piece in pieces:
        window += piece
        if len(window) >= 4 * _OVERLAP:
            await _search(bytes(window), target, ctx)
            del window[:-_OVERLAP]
    await _search(bytes(window), target, ctx)


async def _search(content: bytes, target: Target, ctx: OpContext) -> None:
    search = partial(ctx.check_egress, target.origin, {"body": content})
    if len(content) <= _SEARCHED_AT_ONCE:
        search()
    else:
        await anyio.to_thread.run_sync(search)
