"""A response whose headers have arrived, and reading its body."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from attrs import frozen

from .._addresses._url import RequestTarget
from .._errors import ResponseTooLarge
from .._models import Redirect
from .._request._ranges import RequestedRange
from ._decoding import decoded

if TYPE_CHECKING:
    import httpx


@frozen
class Arrival:
    """A response before its body is read.

    Args:
        part: the part of the body that the skill requested; ``None`` for the whole body.
    """

    response: httpx.Response
    method: str
    target: RequestTarget
    redirects: tuple[Redirect, ...]
    part: RequestedRange | None = None


@asynccontextmanager
async def reading(arrival: Arrival, max_bytes: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """Open the body and yield an iterator of its decompressed pieces.

    Raises:
        ResponseTooLarge: if the body, or its Content-Length, exceeds ``max_bytes``.
        ContentInvalid: if the body does not match its ``Content-Encoding``.
    """
    response = arrival.response
    announced = response.headers.get("content-length", "")
    if arrival.method != "HEAD" and announced.isdecimal() and int(announced) > max_bytes:
        raise ResponseTooLarge("the body", max_bytes)
    raw = response.aiter_raw()
    async with aclosing(decoded(raw, response.headers.get("content-encoding", ""), max_bytes=max_bytes)) as pieces:
        try:
            yield pieces
        finally:
            await _unwind(raw)


async def _unwind(chunks: AsyncIterator[bytes]) -> None:
    """Finish an iteration that may be incomplete.

    The client's generators are nested. Closing the outer one would leave the inner ones to the garbage collector, which
    finalizes them later, in another task. A cancelled read ends all of them here.
    """
    with anyio.CancelScope(shield=True) as scope:
        scope.cancel()
        with suppress(Exception):
            async for _ in chunks:
                pass
