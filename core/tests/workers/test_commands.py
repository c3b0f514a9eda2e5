"""Programs without isolation: environment, descriptors, exit codes, and cleanup of their process groups."""

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


async def test_program_gets_input_and_returns_output(tmp_path):
    command = await launch_plain(python("print(input()[::-1])"))
    try:
        os.write(command.stdin, b"abc\n")
        command.end_input()
        assert await read_all(command.stdout) == b"cba\n"
        assert await command.wait() == 0
    finally:
        await command.close()


async def test_program_inherits_neither_environment_nor_descriptors(monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    code = "import os; print(sorted(os.environ), sorted(os.listdir('/proc/self/fd')))"
    command = await launch_plain(python(code, environment={"ONLY": "this"}))
    try:
        command.end_input()
        output = (await read_all(command.stdout)).decode()
    finally:
        await command.close()
    assert "SECRET_OF_THE_HOST" not in output
    assert output.endswith("['0', '1', '2', '3']\n")  # the last one is that of `listdir` itself


async def test_wait_returns_the_exit_code_or_the_negative_signal():
    for code, expected in (("raise SystemExit(3)", 3), ("import os; os.abort()", -6)):
        command = await launch_plain(python(code))
        try:
            assert await command.wait() == expected
        finally:
            await command.close()


async def test_remaining_processes_of_its_group_are_killed():
    code = "import os, time\nif os.fork() == 0:\n    print('child', flush=True)\n    time.sleep(1000)\ninput()"
    command = await launch_plain(python(code))
    try:
        await anyio.wait_readable(command.stdout)
        os.write(command.stdin, b"\n")
        assert await command.wait() == 0
        # The output ends only after the child has exited too.
        assert await read_all(command.stdout) == b"child\n"
    finally:
        await command.close()


async def test_terminated_program_may_end_itself():
    code = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(3))\nprint('up', flush=True)\nsignal.pause()"
    command = await launch_plain(python(code))
    try:
        await anyio.wait_readable(command.stdout)
        command.terminate()
        assert await command.wait() == 3
        command.terminate()
    finally:
        await command.close()


async def test_close_kills_the_program_and_is_idempotent():
    command = await launch_plain(python("import time; time.sleep(1000)"))
    await command.close()
    await command.close()
    assert await command.wait() == -9


async def test_program_that_cannot_be_started_raises(tmp_path):
    with pytest.raises(WorkerStartFailed, match="cannot start") as caught:
        await launch_plain(ProgramRequest((str(tmp_path / "nothing"),), folder=tmp_path))
    assert caught.value.hint


async def test_plain_sandbox_starts_programs_with_isolation_none():
    sandbox = PlainSandbox()
    assert isinstance(sandbox, ProgramSandbox)
    command = await sandbox.launch_program(python("pass"))
    try:
        assert command.isolation is Isolation.NONE
    finally:
        await command.close()
