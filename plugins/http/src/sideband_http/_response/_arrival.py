"""A response whose header has arrived, and the reading of its body."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from attrs import frozen

from .._addresses._url import RequestTarget
from .._errors import ResponseTooLarge
from .._models import Redirect
from ._decoding import decoded

if TYPE_CHECKING:
    import httpx


@frozen
class Arrival:
    """A response whose body has not been read."""

    response: httpx.Response
    method: str
    target: RequestTarget
    redirects: tuple[Redirect, ...]


@asynccontextmanager
async def reading(arrival: Arrival, max_bytes: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """The body without its compression, in pieces.

    Raises:
        ResponseTooLarge: it is, or is announced to be, larger than ``max_bytes``.
        ContentInvalid: it is not compressed as it says.
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
    """End an iteration that may have been left half-way.

    The client's own generators are nested, and closing the outer one leaves the inner ones to the garbage collector,
    which ends them at another time, in another task. A read that is cancelled ends them all, here.
    """
    with anyio.CancelScope(shield=True) as scope:
        scope.cancel()
        with suppress(Exception):
            async for _ in chunks:
                pass
