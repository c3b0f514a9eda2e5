"""The handshake of a worker: it gets no calls before a valid one, and only its start is limited in time."""

import os
import shutil

import anyio
import attrs
import pytest
from sideband.workers import ProtocolViolation, WorkerStartFailed, _watchdog

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

READY = b'{"__type__": "ready", "python": "3", "version": 1}\n'


@pytest.fixture
def make_call(make_skill, sdk, tmp_path):
    """Return a function that creates a call whose worker runs the given code before the runtime."""
    skill = make_skill("async def pid():\n    return os.getpid()")
    header = "import os, sys, time\ndef say(text):\n    os.write(int(sys.argv[sys.argv.index('--fd') + 1]), text)\n"

    def make(code):
        own = tmp_path / "own-sdk"
        shutil.copytree(sdk, own)
        worker = own / "sideband" / "worker.py"
        worker.write_text(f"{header}{code}\n{worker.read_text()}")
        call = skill.call("pid")
        return attrs.evolve(call, launch=attrs.evolve(call.launch, sdk=own))

    return make


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (READY.replace(b"1}", b"2}"), "protocol version 2"),
        (b'{"__type__": "log", "stream": "stdout", "text": ""}\n', "single `ready` message"),
        (READY * 2, "single `ready` message"),
    ],
)
async def test_worker_with_an_invalid_handshake_is_killed(make_call, make_pool, reports, words, problem):
    async with make_pool() as pool:
        with pytest.raises(ProtocolViolation, match=problem):
            await pool.call(make_call(f"say({words!r})\ntime.sleep(30)"))
    assert [report.code for report in reports] == ["worker.protocol"]


@both_backends
async def test_worker_without_a_handshake_is_killed(make_call, make_pool):
    async with make_pool(start_timeout=0.2) as pool:
        with pytest.raises(WorkerStartFailed, match=r"was not ready within 0.2 s"):
            await pool.call(make_call("time.sleep(30)"))


async def test_processor_time_before_ready_is_not_counted(make_call, make_pool, reports, monkeypatch):
    monkeypatch.setattr(_watchdog, "_IDLE_SECONDS", 0.2)
    async with make_pool() as pool:
        answer = await pool.call(make_call("while time.process_time() < 0.6: pass"))
    assert answer.value != os.getpid()
    assert reports == []


async def test_call_beside_another_is_not_sent_before_the_handshake(make_call, make_pool, tmp_path, until):
    started, may_start = tmp_path / "started", tmp_path / "may-start"
    call = make_call(f"""
import socket
open({str(started)!r}, "w").close()
while not os.path.exists({str(may_start)!r}):
    time.sleep(0.01)
received = socket.socket(fileno=os.dup(int(sys.argv[sys.argv.index("--fd") + 1]))).recv(65536, socket.MSG_PEEK)
if b'"call"' in received:
    sys.exit("a call before the handshake")
""")
    pids = []

    async def run(call):
        pids.append((await pool.call(call)).value)

    async with make_pool() as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(run, call)
        await until(started.exists)
        tasks.start_soon(run, attrs.evolve(call, id="another"))
        await anyio.wait_all_tasks_blocked()
        may_start.touch()
    assert pids[0] == pids[1]
