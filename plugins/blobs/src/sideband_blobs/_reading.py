"""Reads a part of a blob, and rejects a part that would split a secret."""

from __future__ import annotations

import base64

from sideband.blobs import BlobTooLarge
from sideband.ops import OpContext

from ._errors import BlobsNotText
from ._models import BlobGetParams, BlobGetResult
from ._state import Blobs

# how many bytes on either side of a part are searched for a secret that its boundary would split
_WINDOW = 64 * 1024


async def read_part(params: BlobGetParams, ctx: OpContext) -> BlobGetResult:
    """Read the requested part of a blob."""
    state: Blobs = ctx.state
    limit = state.config.max_read_bytes
    async with ctx.blobs.open(params.sha256) as reader:
        size = reader.blob.size
        if params.length is None and size - params.offset > limit:
            raise BlobTooLarge(limit)
        end = params.offset + min(params.length or limit, limit)
        begin = max(0, params.offset - _WINDOW)
        window = bytearray()
        position = 0
        # always read to the end: only then is the digest verified
        async for chunk in reader:
            window += chunk[max(0, begin - position) : max(0, end + _WINDOW - position)]
            position += len(chunk)
    data = window[params.offset - begin : end - begin]
    following = params.offset + len(data)
    content: str | bytes = bytes(data)
    if params.kind == "base64":
        content = base64.b64encode(data).decode()
    elif params.kind == "text":
        content, incomplete = _text(bytes(data), params, last=following >= size)
        following -= incomplete
    for cut in (params.offset - begin, following - begin):
        ctx.check_cut(bytes(window[max(0, cut - _WINDOW) : cut]), bytes(window[cut : cut + _WINDOW]))
    return BlobGetResult(sha256=params.sha256, size=size, content=content, next=following if following < size else None)


def _text(data: bytes, params: BlobGetParams, *, last: bool) -> tuple[str, int]:
    """Return the text, and the number of bytes of an incomplete character at its end."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if not last and error.reason == "unexpected end of data" and error.start > 0:
            return data[: error.start].decode(), len(data) - error.start
        raise BlobsNotText(params.sha256, params.offset + error.start) from None
