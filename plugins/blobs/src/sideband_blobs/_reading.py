"""Reads a part of a blob, and refuses one that would show a part of a secret."""

from __future__ import annotations

import base64

from sideband.blobs import BlobTooLarge
from sideband.ops import OpContext

from ._errors import BlobsNotText
from ._models import BlobGetParams, BlobGetResult
from ._state import Blobs

# How much on either side of a part is searched for a secret that its beginning or end would divide.
_AROUND = 64 * 1024


async def read_part(params: BlobGetParams, ctx: OpContext) -> BlobGetResult:
    """The part that was asked for."""
    state: Blobs = ctx.state
    limit = state.config.max_read_bytes
    async with ctx.blobs.open(params.sha256) as reader:
        size = reader.blob.size
        if params.length is None and size - params.offset > limit:
            raise BlobTooLarge(limit)
        end = params.offset + min(params.length or limit, limit)
        begin = max(0, params.offset - _AROUND)
        around = bytearray()
        position = 0
        # to the end, whatever was asked for: only then it is known to be what it is called
        async for piece in reader:
            around += piece[max(0, begin - position) : max(0, end + _AROUND - position)]
            position += len(piece)
    data = around[params.offset - begin : end - begin]
    following = params.offset + len(data)
    content: str | bytes = bytes(data)
    if params.kind == "base64":
        content = base64.b64encode(data).decode()
    elif params.kind == "text":
        content, left = _text(bytes(data), params, last=following >= size)
        following -= left
    for cut in (params.offset - begin, following - begin):
        ctx.check_cut(bytes(around[max(0, cut - _AROUND) : cut]), bytes(around[cut : cut + _AROUND]))
    return BlobGetResult(sha256=params.sha256, size=size, content=content, next=following if following < size else None)


def _text(data: bytes, params: BlobGetParams, *, last: bool) -> tuple[str, int]:
    """The text, and how many bytes at the end are the beginning of a character whose rest was not asked for."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if not last and error.reason == "unexpected end of data" and error.start > 0:
            return data[: error.start].decode(), len(data) - error.start
        raise BlobsNotText(params.sha256, params.offset + error.start) from None
