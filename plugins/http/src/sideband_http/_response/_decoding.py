"""Decompression with a limit on the output, however small the input."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator

from .._errors import ContentInvalid, ResponseTooLarge

ACCEPTED_ENCODINGS = "gzip, deflate"

_GZIP = frozenset({"gzip", "x-gzip"})
_PIECE_BYTES = 65_536
_MAX_LAYERS = 3
# Window sizes that select a gzip header and no header.
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_RAW_WINDOW = -zlib.MAX_WBITS


class _Inflater:
    """Decompresses one layer, piece by piece."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._gzip = encoding in _GZIP
        self._engine = zlib.decompressobj(_GZIP_WINDOW if self._gzip else zlib.MAX_WBITS)
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self._engine.eof:
                # A gzip file may have several members. Anything else after the first one is padding.
                if not (self._gzip and chunk.startswith(b"\x1f")):
                    return
                self._engine = zlib.decompressobj(_GZIP_WINDOW)
            piece = self._inflate(chunk)
            yield piece
            while not self._engine.eof and (self._engine.unconsumed_tail or len(piece) == _PIECE_BYTES):
                piece = self._inflate(self._engine.unconsumed_tail)
                yield piece
            chunk = self._engine.unused_data

    def _inflate(self, chunk: bytes) -> bytes:
        try:
            piece = self._engine.decompress(chunk, _PIECE_BYTES)
        except zlib.error as error:
            if self._gzip or self._begun:
                raise ContentInvalid(self._encoding, str(error)) from None
            # Many servers send `deflate` without the header that the standard requires.
            self._engine = zlib.decompressobj(_RAW_WINDOW)
            self._begun = True
            return self._inflate(chunk)
        self._begun = True
        return piece

    def finish(self) -> None:
        if self._begun and not self._engine.eof:
            raise ContentInvalid(self._encoding, "truncated data")


def _layers(content_encoding: str) -> list[str]:
    names = (name.strip().lower() for name in content_encoding.split(","))
    return [name for name in names if name and name != "identity"]


def is_decodable(content_encoding: str) -> bool:
    """Return whether a body with this ``Content-Encoding`` can be decoded. Other bodies are returned unchanged."""
    layers = _layers(content_encoding)
    return len(layers) <= _MAX_LAYERS and all(name in _GZIP or name == "deflate" for name in layers)


async def decoded(
    chunks: AsyncIterable[bytes], content_encoding: str, *, max_bytes: int
) -> AsyncGenerator[bytes, None]:
    """Yield the decompressed body. The pieces of a compressed body have at most 64 KiB.

    Raises:
        ResponseTooLarge: if the body exceeds ``max_bytes`` before or after decompression.
        ContentInvalid: if the body does not match its ``Content-Encoding``.
    """
    layers = _layers(content_encoding) if is_decodable(content_encoding) else []
    inflaters = [_Inflater(name) for name in reversed(layers)]
    received = produced = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > max_bytes:
            raise ResponseTooLarge("the body", max_bytes)
        for piece in _through(inflaters, chunk):
            produced += len(piece)
            if produced > max_bytes:
                raise ResponseTooLarge("the decompressed body", max_bytes)
            if piece:
                yield piece
    for inflater in inflaters:
        inflater.finish()


def _through(inflaters: Iterable[_Inflater], chunk: bytes) -> Iterator[bytes]:
    first, *others = inflaters or (None,)
    if first is None:
        yield chunk
        return
    for piece in first.feed(chunk):
        yield from _through(others, piece)
