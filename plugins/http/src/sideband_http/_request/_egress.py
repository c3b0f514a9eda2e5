"""The search for secrets in requests.

A known secret is sent only to the origins it is bound to, and never in a URL, because URLs end up in logs.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from functools import partial
from urllib.parse import unquote, unquote_plus

import anyio
from attrs import define, field
from sideband.ops import EgressRefused, OpContext

from .._addresses._url import RequestTarget
from ._bodies import BlobBody, Body

# Up to this size, a search takes less time than starting a thread.
_MAX_SEARCHED_INLINE = 262_144
# The longest secret has 64 KiB, or three times that if percent-encoded.
_OVERLAP = 262_144


def check_url(target: RequestTarget, method: str, ctx: OpContext) -> None:
    """Check the request line, which name servers, proxies and logs may see.

    Raises:
        EgressRefused: if it contains a secret, literally or percent-encoded.
    """
    url = target.url
    ctx.check_egress(None, {"request line": "\n".join({method, url, unquote(url), unquote_plus(url)})})


def check_headers_leaving(headers: Mapping[str, str], target: RequestTarget, ctx: OpContext) -> None:
    """Check headers and cookies. The credential is bound to this origin, so it passes.

    Raises:
        EgressRefused: if one contains a secret that is not bound to the origin.
    """
    lines = {f"header `{name}`": f"{name}: {value}" for name, value in headers.items()}
    try:
        # One search for all headers: the cost of each search grows with the number of secrets.
        ctx.check_egress(target.origin, {"headers": "\n".join(lines.values())})
    except EgressRefused:
        ctx.check_egress(target.origin, lines)


async def check_body(content: Body | None, target: RequestTarget, ctx: OpContext) -> None:
    """Check a body.

    Raises:
        EgressRefused: if the body contains a secret that is not bound to the origin.
    """
    if isinstance(content, BlobBody):
        async with content.reading() as pieces:
            await check_stream(pieces, target, ctx)
    elif content:
        await _search(content, target.origin, ctx)


async def check_stream(pieces: AsyncIterable[bytes], target: RequestTarget, ctx: OpContext) -> None:
    """Check a body that is too large for memory. Call it before sending, so that not even part of a secret is sent.

    Args:
        pieces: the complete body. The same bytes must be sent afterwards.
        target: the target of the request.
        ctx: the context of the op.

    Raises:
        EgressRefused: if the body contains a secret that is not bound to the origin.
    """
    search = BodySearch(ctx, target.origin)
    async for piece in pieces:
        await search.feed(piece)
    await search.end()


@define
class BodySearch:
    """Searches a body that arrives in pieces for secrets not bound to an audience.

    Args:
        ctx: the context of the op.
        audience: the origin that receives the body, or ``None`` if no secret is allowed.
    """

    _ctx: OpContext
    _audience: str | None
    _window: bytearray = field(factory=bytearray, init=False)

    async def feed(self, piece: bytes) -> None:
        """Add a piece.

        Raises:
            EgressRefused: if the body so far contains a secret.
        """
        self._window += piece
        if len(self._window) >= 4 * _OVERLAP:
            await self._search()
            del self._window[:-_OVERLAP]

    async def end(self) -> None:
        """Search the rest after the last piece.

        Raises:
            EgressRefused: if it contains a secret.
        """
        await self._search()

    async def _search(self) -> None:
        await _search(bytes(self._window), self._audience, self._ctx)


async def _search(content: bytes, audience: str | None, ctx: OpContext) -> None:
    search = partial(ctx.check_egress, audience, {"body": content})
    if len(content) <= _MAX_SEARCHED_INLINE:
        search()
    else:
        await anyio.to_thread.run_sync(search)
