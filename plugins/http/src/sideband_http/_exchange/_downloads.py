"""Streaming a body to a file or a blob, which is either complete or does not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sideband.ops import EgressRefused, OpContext
from sideband_confined_files import REPLACED_FOLDERS, ConfinedFolder, FolderLocks, RecordedFolders

from .._errors import SecretReturned
from .._models import MEBIBYTE
from .._request._egress import BodySearch
from .._response._arrival import Arrival, reading

_FILES = "files"


def download_folder(ctx: OpContext, folders: Sequence[str] | None = None) -> ConfinedFolder:
    """Return the folder for downloads, restricted to the recorded folders on the path of a file, if given."""
    folder = ConfinedFolder(Path(ctx.home) / _FILES, locks=FolderLocks(ctx.home))
    if folders is None:
        return folder
    return folder.through(RecordedFolders(folders, ctx.home / REPLACED_FOLDERS))


async def save_body(
    arrival: Arrival, write: Callable[[bytes], Awaitable[None]], max_bytes: int, what: str, ctx: OpContext
) -> None:
    """Write a body in pieces and report progress.

    Raises:
        SecretReturned: if the body contains a known secret.
        ResponseTooLarge: if the body exceeds ``max_bytes``.
        ContentInvalid: if the body does not match its ``Content-Encoding``.
    """
    announced = arrival.response.headers.get("content-length", "")
    total = float(announced) if announced.isdecimal() else None
    received = reported = 0
    search = BodySearch(ctx, None)
    with _secret_returned(arrival):
        async with reading(arrival, max_bytes) as pieces:
            async for piece in pieces:
                await search.feed(piece)
                await write(piece)
                received += len(piece)
                if received - reported >= MEBIBYTE:
                    reported = received
                    await ctx.progress(current=float(reported), total=total, message=what, unit="bytes")
            await search.end()


@contextmanager
def _secret_returned(arrival: Arrival) -> Iterator[None]:
    """Convert ``EgressRefused`` to ``SecretReturned``."""
    try:
        yield
    except EgressRefused:
        raise SecretReturned(arrival.target.origin) from None
