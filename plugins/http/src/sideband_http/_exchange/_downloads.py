"""Bodies too large for an answer: streamed into a file or a blob, which is there whole or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sideband.ops import EgressRefused, OpContext
from sideband_confined_files import ConfinedFolder

from .._errors import SecretReturned
from .._models import MEBIBYTE
from .._request._egress import BodySearch
from .._response._arrival import Arrival, reading

_FILES = "files"


def download_folder(ctx: OpContext) -> ConfinedFolder:
    """Where downloads go."""
    return ConfinedFolder(Path(ctx.home) / _FILES)


async def save_body(
    arrival: Arrival, write: Callable[[bytes], Awaitable[None]], max_bytes: int, what: str, ctx: OpContext
) -> None:
    """Write a body piece by piece, and report its progress.

    Raises:
        SecretReturned: it holds a secret that the host knows.
        ResponseTooLarge: it is larger than ``max_bytes``.
        ContentInvalid: it is not compressed as it says.
    """
    announced = arrival.response.headers.get("content-length", "")
    total = float(announced) if announced.isdecimal() else None
    came = told = 0
    search = BodySearch(ctx, None)
    with _not_kept(arrival):
        async with reading(arrival, max_bytes) as pieces:
            async for piece in pieces:
                await search.feed(piece)
                await write(piece)
                came += len(piece)
                if came - told >= MEBIBYTE:
                    told = came
                    await ctx.progress(current=float(told), total=total, message=what)
            await search.end()


@contextmanager
def _not_kept(arrival: Arrival) -> Iterator[None]:
    """What is kept can be read in parts, and half a secret is not recognised any more."""
    try:
        yield
    except EgressRefused:
        raise SecretReturned(arrival.target.origin) from None
