"""Messages as lines over descriptors, which may be pipes, sockets or files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import anyio
from anyio.lowlevel import checkpoint
from attrs import define

from ._claimed_streams import ClaimedStreams

_CHUNK = 65_536
_PIECE = 4_096
"""What a pipe takes without waiting, once it can be written to."""


class LineTooLong(Exception):
    """The client sent a line that is longer than the limit."""


@define(eq=False)
class Lines:
    """The lines that a client sends and gets.

    Attributes:
        streams: the streams of the client.
        largest: the maximum size of a line in bytes.
    """

    streams: ClaimedStreams
    largest: int

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the lines of the client that are not empty, until it closes its end.

        Raises:
            LineTooLong: if a line is too long.
        """
        buffer = bytearray()
        while data := await self._chunk():
            start = len(buffer)
            buffer += data
            while (end := buffer.find(b"\n", start)) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                start = 0
                if len(line) > self.largest:
                    raise LineTooLong
                if line.strip():
                    yield line
            if len(buffer) > self.largest:
                raise LineTooLong

    async def write(self, line: bytes) -> None:
        """Write a line, as fast as the client reads.

        Raises:
            OSError: if the client has closed its end.
        """
        view = memoryview(line + b"\n")
        while view:
            view = view[await self._put(view[:_PIECE]) :]

    async def _chunk(self) -> bytes:
        """Read the next bytes; empty at the end of the stream."""
        try:
            await anyio.wait_readable(self.streams.input)
        except PermissionError:  # a file, which is always readable
            return await anyio.to_thread.run_sync(os.read, self.streams.input, _CHUNK, abandon_on_cancel=True)
        await checkpoint()
        try:
            return os.read(self.streams.input, _CHUNK)
        except BlockingIOError:
            return await self._chunk()
        except ConnectionResetError:
            return b""

    async def _put(self, piece: memoryview) -> int:
        try:
            await anyio.wait_writable(self.streams.output)
        except PermissionError:  # as above
            return await anyio.to_thread.run_sync(os.write, self.streams.output, bytes(piece))
        try:
            return os.write(self.streams.output, piece)
        except BlockingIOError:
            return 0
