"""The host's end of a worker's socket: the order of lines, and lines that are sent together."""

import socket
from types import SimpleNamespace

import anyio
import pytest
from sideband.workers._channel import open_channel

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
async def connection():
    """A channel, the other end of its socket, and a function that reads all that arrives there soon."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)

    async def read(size):
        received = b""
        while len(received) < size:
            await anyio.wait_readable(theirs)
            received += theirs.recv(size - len(received))
        return received

    async with anyio.create_task_group() as tasks:
        channel = open_channel(ours, write_timeout=20, send_left=lambda: tasks.start_soon(channel.send_rest, b"", 0))
        yield SimpleNamespace(channel=channel, theirs=theirs, read=read, tasks=tasks)
        tasks.cancel_scope.cancel()
        channel.close()
        theirs.close()


def arrived(connection):
    try:
        return connection.theirs.recv(65_536, socket.MSG_PEEK)
    except BlockingIOError:
        return b""


async def test_lines_of_one_iteration_of_the_event_loop_are_sent_together(connection):
    for line in (b"1\n", b"2\n", b"3\n"):
        assert connection.channel.send_soon(line) == len(line)
    assert arrived(connection) == b""
    await anyio.lowlevel.checkpoint()
    assert arrived(connection) == b"1\n2\n3\n"


async def test_many_gathered_bytes_are_sent_without_waiting(connection):
    """What the host holds for a worker that does not read is limited."""
    for _ in range(4):
        assert not arrived(connection)
        connection.channel.send_soon(b"x" * 16_384)
    assert arrived(connection)


@BOTH_BACKENDS
async def test_line_that_is_sent_at_once_does_not_overtake_gathered_lines(connection):
    connection.channel.send_soon(b"1\n")
    await connection.channel.send(b"2\n")
    connection.channel.send_soon(b"3\n")
    with anyio.fail_after(20):
        assert await connection.read(6) == b"1\n2\n3\n"


@BOTH_BACKENDS
async def test_lines_that_the_worker_does_not_read_at_once_keep_their_order(connection, anyio_backend):
    """The rest of gathered lines is sent by a task, which other senders must not overtake."""
    order = list if anyio_backend == "asyncio" else sorted  # trio starts tasks in any order
    lines = [bytes([65 + number]) * 30_000 + b"\n" for number in range(12)]

    async def send(line):
        if (sent := connection.channel.send_soon(line)) < len(line):
            await connection.channel.send_rest(line, sent)

    for line in lines:
        connection.tasks.start_soon(send, line)
    await anyio.wait_all_tasks_blocked()
    connection.tasks.start_soon(connection.channel.send, b"last\n")
    with anyio.fail_after(20):
        received = await connection.read(12 * 30_001 + 5)
    assert order(received.splitlines(keepends=True)) == order([*lines, b"last\n"])


async def test_line_that_is_sent_at_once_does_not_overtake_what_is_left(connection):
    connection.channel.send_soon(b"x" * 300_000)
    received = connection.theirs.recv(300_000)  # now the socket has room
    assert connection.channel.send_now(b"last") == 0
    connection.tasks.start_soon(connection.channel.send_rest, b"last", 0)
    with anyio.fail_after(20):
        received += await connection.read(300_004 - len(received))
    assert received == b"x" * 300_000 + b"last"


async def test_what_is_left_is_sent_without_a_further_line(connection):
    connection.channel.send_soon(b"x" * 300_000)
    with anyio.fail_after(20):
        assert await connection.read(300_000) == b"x" * 300_000
