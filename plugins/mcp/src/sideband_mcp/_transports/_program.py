"""Speak with a server that is a program, over its standard input and output, a message a line."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError
from sideband.workers import ProgramProcess

from .._errors import McpInvalid, McpTooLarge, McpUnavailable
from ._failure import ConnectionFailure

_CHUNK = 65_536
_KEPT_ERRORS = 2_000
_MAX_NOISE = 1_000
"""How many lines that are not messages a server may print. Many print a greeting."""

_Message = SessionMessage | Exception


@asynccontextmanager
async def program_transport(
    process: ProgramProcess, server: str, *, failure: ConnectionFailure, max_message_bytes: int, close_seconds: float
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of a started program. The program is closed at the end.

    Args:
        process: the program.
        server: the name of the server, for errors.
        failure: gets the reason if the connection fails.
        max_message_bytes: the maximum size of a message.
        close_seconds: how long the program may take to end by itself after its input was closed.
    """
    into, messages = anyio.create_memory_object_stream[_Message](0)
    requests, out = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _ProgramTalk(process, server, failure, max_message_bytes)
    try:
        async with into, messages, requests, out, anyio.create_task_group() as tasks:
            tasks.start_soon(talk.read_errors)
            tasks.start_soon(talk.read, into)
            tasks.start_soon(talk.write, out, into)
            try:
                yield messages, requests
            finally:
                with anyio.move_on_after(close_seconds, shield=True):
                    messages.close()
                    process.end_input()
                    await process.wait()
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await process.close()


@define
class _ProgramTalk:
    process: ProgramProcess
    server: str
    failure: ConnectionFailure
    max_message_bytes: int
    errors: bytearray = field(init=False, factory=bytearray)
    noise: int = field(init=False, default=0)

    async def read(self, into: anyio.abc.ObjectSendStream[_Message]) -> None:
        """Pass on the messages of the server until it ends or breaks a limit."""
        buffer = bytearray()
        async with into:
            try:
                while data := await _chunk(self.process.stdout):
                    start = max(0, len(buffer))
                    buffer += data
                    while (end := buffer.find(b"\n", start)) >= 0:
                        await self._pass_on(bytes(buffer[:end]), into)
                        del buffer[: end + 1]
                        start = 0
                    if len(buffer) > self.max_message_bytes:
                        raise self._too_large()
                self.failure.set(McpUnavailable(self.server, f"its program ended{self._last_words()}"))
            except (McpInvalid, McpTooLarge) as error:
                self.failure.set(error)
                self.process.kill()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the session has ended first

    async def _pass_on(self, line: bytes, into: anyio.abc.ObjectSendStream[_Message]) -> None:
        if len(line) > self.max_message_bytes:
            raise self._too_large()
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self.noise += 1
            if self.noise > _MAX_NOISE:
                raise McpInvalid(
                    self.server, f"it printed {self.noise:,} lines that are not messages; it must log to standard error"
                ) from None
        else:
            await into.send(SessionMessage(message))

    async def read_errors(self) -> None:
        """Keep the end of what the program prints to standard error, for messages about its end."""
        while data := await _chunk(self.process.stderr):
            self.errors += data
            del self.errors[:-_KEPT_ERRORS]

    async def write(
        self, out: anyio.abc.ObjectReceiveStream[SessionMessage], into: anyio.abc.ObjectSendStream[_Message]
    ) -> None:
        """Write messages to the server as fast as it reads them."""
        try:
            async for one in out:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                view = memoryview(text.encode() + b"\n")
                while view:
                    await anyio.wait_writable(self.process.stdin)
                    view = view[os.write(self.process.stdin, view[:_CHUNK]) :]
        except (OSError, anyio.ClosedResourceError):
            # Without this, requests would wait for an answer until their timeout.
            await into.aclose()

    def _too_large(self) -> McpTooLarge:
        return McpTooLarge(self.server, "a message", self.max_message_bytes, "max_message_bytes")

    def _last_words(self) -> str:
        text = self.errors.decode("utf-8", "replace").strip()
        return f"; it printed: {text}" if text else ""


async def _chunk(descriptor: int) -> bytes:
    """Read the next bytes; empty at the end of the stream."""
    while True:
        await anyio.wait_readable(descriptor)
        await checkpoint()
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
