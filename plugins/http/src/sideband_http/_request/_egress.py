"""No known secret leaves for where it is not bound, and none in a URL: those end up in logs and histories."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from functools import partial
from urllib.parse import unquote, unquote_plus

import anyio
from attrs import define, field
from sideband.ops import EgressRefused, OpContext

from .._addresses._url import RequestTarget
from ._bodies import BlobBody, Body

# Searching this much takes less time than handing it to a thread.
_SEARCHED_AT_ONCE = 262_144
# The longest secret has 64 KiB, and three times that percent-encoded.
_OVERLAP = 262_144


def check_url(target: RequestTarget, method: str, ctx: OpContext) -> None:
    """Check what is told to name servers, proxies and everybody who sees the URL.

    Raises:
        EgressRefused: it holds a secret, as it stands or once decoded.
    """
    url = target.url
    ctx.check_egress(None, {"request line": "\n".join({method, url, unquote(url), unquote_plus(url)})})


def check_headers_leaving(headers: Mapping[str, str], target: RequestTarget, ctx: OpContext) -> None:
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


async def check_body(content: Body | None, target: RequestTarget, ctx: OpContext) -> None:
    """Check a body.

    Raises:
        EgressRefused: it holds a secret that is not bound to the origin.
    """
    if isinstance(content, BlobBody):
        async with content.reading() as pieces:
            await check_stream(pieces, target, ctx)
    elif content:
        await _search(content, target.origin, ctx)


async def check_stream(pieces: AsyncIterable[bytes], target: RequestTarget, ctx: OpContext) -> None:
    """Check a body that is too large to be held. To be done before it is sent, so that no half of a secret is.

    Args:
        pieces: all of it. What is sent afterwards must be the same.
        target: where it is about to go.
        ctx: who sends it.

    Raises:
        EgressRefused: it holds a secret that is not bound to the origin.
    """
    search = BodySearch(ctx, target.origin)
    async for piece in pieces:
        await search.feed(piece)
    await search.end()


@define
class BodySearch:
    """Searches a body that comes in pieces for secrets that must not get to an audience.

    Args:
        ctx: who knows the secrets.
        audience: the origin that gets the body; ``None`` for a place that is for no secret at all.
    """

    _ctx: OpContext
    _audience: str | None
    _window: bytearray = field(factory=bytearray, init=False)

    async def feed(self, piece: bytes) -> None:
        """Take a piece.

        Raises:
            EgressRefused: what came so far holds a secret.
        """
        self._window += piece
        if len(self._window) >= 4 * _OVERLAP:
            await self._search()
            del self._window[:-_OVERLAP]

    async def end(self) -> None:
        """Search what is left: nothing comes any more.

        Raises:
            EgressRefused: it holds a secret.
        """
        await self._search()

    async def _search(self) -> None:
        await _search(bytes(self._window), self._audience, self._ctx)


async def _search(content: bytes, audience: str | None, ctx: OpContext) -> None:
    search = partial(ctx.check_egress, audience, {"body": content})
    if len(content) <= _SEARCHED_AT_ONCE:
        search()
    else:
        await anyio.to_thread.run_sync(search)
