"""Serve one client over standard input and output."""

from __future__ import annotations

import logging
import os
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from ._claimed_streams import ClaimedStreams

_CHUNK = 65_536
_PIECE = 4_096
"""What a pipe takes without waiting, once it can be written to."""

_Message = SessionMessage | Exception
_log = logging.getLogger("sideband.mcp")


async def serve_streams(server: Server[Any], streams: ClaimedStreams, *, largest: int) -> None:
    """Serve the client until it closes its end.

    Args:
        server: the server.
        streams: the streams.
        largest: the maximum size of a message in bytes.
    """
    into, messages = anyio.create_memory_object_stream[_Message](0)
    answers, out = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _Talk(streams, largest)
    async with into, messages, answers, out, anyio.create_task_group() as tasks:
        tasks.start_soon(talk.read, into)
        tasks.start_soon(talk.write, out, tasks.cancel_scope)
        await server.run(messages, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


@define(eq=False)
class _Talk:
    streams: ClaimedStreams
    largest: int
    _plain: bool = field(default=False, init=False)

    async def read(self, into: anyio.abc.ObjectSendStream[_Message]) -> None:
        """Pass on the messages of the client. A line that is not a message is answered with an error."""
        buffer = bytearray()
        try:
            async with into:
                while data := await self._chunk():
                    start = len(buffer)
                    buffer += data
                    while (end := buffer.find(b"\n", start)) >= 0:
                        line = bytes(buffer[:end])
                        del buffer[: end + 1]
                        start = 0
                        if line.strip():
                            await into.send(_message(line))
                    if len(buffer) > self.largest:
                        _log.warning("the MCP client sent a message of more than %s bytes", f"{self.largest:,}")
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            await checkpoint()  # the server has ended first

    async def write(self, out: anyio.abc.ObjectReceiveStream[SessionMessage], scope: anyio.CancelScope) -> None:
        """Write to the client, as fast as it reads. If it has left, the server ends."""
        try:
            async for one in out:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                view = memoryview(text.encode() + b"\n")
                while view:
                    view = view[await self._put(view[:_PIECE]) :]
        except OSError:
            scope.cancel()

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


def _message(line: bytes) -> _Message:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error
