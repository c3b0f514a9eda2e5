"""Messages over descriptors, as lines."""

import json
import os
from contextlib import asynccontextmanager

import anyio
import pytest
from sideband_mcp._serving._streams import serve_streams
from sideband_serving import ClaimedStreams

pytestmark = pytest.mark.anyio

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Line:
    """Both ends of a connection."""

    def __init__(self):
        self.theirs, self.mine = os.pipe(), os.pipe()
        self.streams = ClaimedStreams(self.theirs[0], self.mine[1])
        self.ended = anyio.Event()

    async def write(self, data):
        await anyio.to_thread.run_sync(os.write, self.theirs[1], data)

    async def send(self, **message):
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self):
        """Return the next message."""
        buffer = b""
        while not buffer.endswith(b"\n"):
            await anyio.wait_readable(self.mine[0])
            buffer += os.read(self.mine[0], 1)
        return json.loads(buffer)

    async def initialize(self):
        await self.send(id=0, method="initialize", params=CLIENT)
        await self.read()
        await self.send(method="notifications/initialized")


@pytest.fixture
def connect(serving):
    @asynccontextmanager
    async def connected(largest=1 << 20):
        line = Line()
        async with serving() as one, anyio.create_task_group() as tasks:

            async def serve():
                await serve_streams(one.server, line.streams, largest=largest)
                line.ended.set()

            tasks.start_soon(serve)
            yield line
            tasks.cancel_scope.cancel()

    return connected


async def test_large_result_is_written_in_pieces(connect):
    async with connect() as line:
        await line.initialize()
        call = {"name": "things__echo", "arguments": {"text": "x" * 1_000, "times": 30}}
        await line.send(id=1, method="tools/call", params=call)
        assert (await line.read())["result"]["content"][0]["text"] == "x" * 30_000


async def test_other_lines_do_not_end_the_connection(connect):
    async with connect() as line:
        await line.write(b'no message\n\n[]\n{"jsonrpc": "2.0"}\n\xff\n')
        await line.initialize()
        await line.send(id=1, method="ping")
        assert (await line.read())["id"] == 1


async def test_message_in_pieces_is_one_message(connect):
    async with connect() as line:
        await line.initialize()
        await line.write(b'{"jsonrpc": "2.0", "id": 1, ')
        await line.write(b'"method": "ping"}\n{"jsonrpc": "2.0", "id": 2, "method": "ping"}\n')
        assert {(await line.read())["id"], (await line.read())["id"]} == {1, 2}


async def test_message_that_is_too_long_ends_the_connection(connect, caplog):
    async with connect(largest=10_000) as line:
        await line.initialize()
        await line.write(b"x" * 20_000)
        await line.ended.wait()
        assert "more than 10,000 bytes" in caplog.text


async def test_client_that_closes_its_end_ends_the_connection(connect):
    async with connect() as line:
        await line.initialize()
        os.close(line.theirs[1])
        await line.ended.wait()


async def test_client_that_does_not_read_ends_the_connection(connect):
    async with connect() as line:
        await line.initialize()
        os.close(line.mine[0])
        await line.send(id=1, method="ping")
        await line.ended.wait()
