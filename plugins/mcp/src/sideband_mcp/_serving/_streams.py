"""Serve one client over standard input and output."""

from __future__ import annotations

import logging
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from attrs import frozen
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError
from sideband_serving import ClaimedStreams, Lines, LineTooLong

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
    talk = _Talk(Lines(streams, largest))
    async with into, messages, answers, out, anyio.create_task_group() as tasks:
        tasks.start_soon(talk.read, into)
        tasks.start_soon(talk.write, out, tasks.cancel_scope)
        await server.run(messages, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


@frozen
class _Talk:
    lines: Lines

    async def read(self, into: anyio.abc.ObjectSendStream[_Message]) -> None:
        """Pass on the messages of the client. A line that is not a message is answered with an error."""
        try:
            async with into:
                async for line in self.lines.read():
                    await into.send(_message(line))
        except LineTooLong:
            _log.warning("the MCP client sent a message of more than %s bytes", f"{self.lines.largest:,}")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            await checkpoint()  # the server has ended first

    async def write(self, out: anyio.abc.ObjectReceiveStream[SessionMessage], scope: anyio.CancelScope) -> None:
        """Write to the client, as fast as it reads. If it has left, the server ends."""
        try:
            async for one in out:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self.lines.write(text.encode())
        except OSError:
            scope.cancel()


def _message(line: bytes) -> _Message:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error
