"""Lines over descriptors."""

import os

import anyio
import pytest
from sideband_serving import ClaimedStreams, Lines, LineTooLong

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def ends():
    """The descriptors of a client: where it writes, and where it reads; and its streams."""
    (read, theirs), (mine, write) = os.pipe(), os.pipe()
    yield theirs, mine, ClaimedStreams(read, write)
    for one in (read, theirs, mine, write):
        try:
            os.close(one)
        except OSError:
            continue


async def test_lines_are_read_until_the_client_closes_its_end(ends):
    theirs, _, streams = ends
    os.write(theirs, b'{"a": 1}\n\n  \n{"b"')
    os.write(theirs, b": 2}\nunfinished")
    os.close(theirs)
    assert [line async for line in Lines(streams, 100).read()] == [b'{"a": 1}', b'{"b": 2}']


@pytest.mark.parametrize("data", [b"x" * 101, b"x" * 101 + b"\n"])
async def test_line_that_is_too_long_is_refused(ends, data):
    theirs, _, streams = ends
    os.write(theirs, data)
    with pytest.raises(LineTooLong):
        [line async for line in Lines(streams, 100).read()]


async def test_file_is_read_like_a_pipe(ends, tmp_path):
    (tmp_path / "input").write_bytes(b"one\ntwo\n")
    descriptor = os.open(tmp_path / "input", os.O_RDONLY)
    streams = ClaimedStreams(descriptor, ends[2].output)
    assert [line async for line in Lines(streams, 100).read()] == [b"one", b"two"]
    os.close(descriptor)


async def test_line_larger_than_a_pipe_is_written_as_the_client_reads(ends):
    _, mine, streams = ends
    got = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Lines(streams, 100).write, b"x" * 300_000)
        while not got.endswith(b"\n"):
            await anyio.wait_readable(mine)
            got += os.read(mine, 65_536)
    assert len(got) == 300_001


async def test_writing_to_a_client_that_has_left_fails(ends):
    _, mine, streams = ends
    os.close(mine)
    with pytest.raises(OSError, match="Broken pipe"):
        await Lines(streams, 100).write(b"x")
