"""Commands without isolation: an environment and descriptors of their own, and an end for all that they start."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from sideband.workers import Isolation, PlainSandbox, ProgramRequest, ProgramSandbox, WorkerStartFailed, launch_plain

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


def python(code, **options):
    return ProgramRequest((sys.executable, "-I", "-S", "-c", code), folder=Path("/"), **options)


async def read_all(descriptor):
    pieces = []
    while True:
        await anyio.wait_readable(descriptor)
        piece = os.read(descriptor, 65_536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


async def test_it_gets_its_input_and_its_output_comes_back(tmp_path):
    command = await launch_plain(python("print(input()[::-1])"))
    try:
        os.write(command.stdin, b"abc\n")
        command.end_input()
        assert await read_all(command.stdout) == b"cba\n"
        assert await command.wait() == 0
    finally:
        await command.close()


async def test_it_inherits_neither_environment_nor_descriptors(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    code = "import os; print(sorted(os.environ), sorted(os.listdir('/proc/self/fd')))"
    command = await launch_plain(python(code, environment={"ONLY": "this"}))
    try:
        command.end_input()
        said = (await read_all(command.stdout)).decode()
    finally:
        await command.close()
    assert "SECRET_OF_THE_HOST" not in said
    assert said.endswith("['0', '1', '2', '3']\n")  # the last one is the listing itself


async def test_it_is_told_apart_by_code_and_by_signal():
    for code, expected in (("raise SystemExit(3)", 3), ("import os; os.abort()", -6)):
        command = await launch_plain(python(code))
        try:
            assert await command.wait() == expected
        finally:
            await command.close()


async def test_what_it_leaves_in_its_group_ends_with_it():
    code = "import os, time\nif os.fork() == 0:\n    print('child', flush=True)\n    time.sleep(1000)\ninput()"
    command = await launch_plain(python(code))
    try:
        await anyio.wait_readable(command.stdout)
        os.write(command.stdin, b"\n")
        assert await command.wait() == 0
        # Only when the child has gone too does the output end.
        assert await read_all(command.stdout) == b"child\n"
    finally:
        await command.close()


async def test_closing_ends_it_and_can_be_repeated():
    command = await launch_plain(python("import time; time.sleep(1000)"))
    await command.close()
    await command.close()
    assert await command.wait() == -9


async def test_what_can_not_be_started_is_a_typed_error(tmp_path):
    with pytest.raises(WorkerStartFailed, match="cannot start") as caught:
        await launch_plain(ProgramRequest((str(tmp_path / "nothing"),), folder=tmp_path))
    assert caught.value.hint


async def test_the_plain_sandbox_starts_commands_and_claims_nothing():
    sandbox = PlainSandbox()
    assert isinstance(sandbox, ProgramSandbox)
    command = await sandbox.launch_program(python("pass"))
    try:
        assert command.isolation is Isolation.NONE
    finally:
        await command.close()
