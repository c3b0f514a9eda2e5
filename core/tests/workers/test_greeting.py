"""The first words of a worker: until they are right it takes no calls, and nothing but its time to start is watched."""

import os
import shutil

import attrs
import pytest
from sideband.workers import ProtocolViolation, WorkerStartFailed

pytestmark = pytest.mark.anyio

READY = b'{"__type__": "ready", "python": "3", "version": 1}\n'


@pytest.fixture
def make_call(make_skill, sdk, tmp_path):
    """A call whose worker runs this before the runtime; ``say`` writes to the host."""
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
        (b'{"__type__": "log", "stream": "stdout", "text": ""}\n', "its first message is not `ready`"),
        (READY * 2, "not alone"),
    ],
)
async def test_a_worker_that_greets_wrongly_is_ended(make_call, make_pool, reports, words, problem):
    async with make_pool() as pool:
        with pytest.raises(ProtocolViolation, match=problem):
            await pool.call(make_call(f"say({words!r})\ntime.sleep(30)"))
    assert [report.code for report in reports] == ["worker.protocol"]


async def test_a_worker_that_does_not_greet_is_ended(make_call, make_pool):
    async with make_pool(start_timeout=0.2) as pool:
        with pytest.raises(WorkerStartFailed, match=r"was not ready within 0.2 s"):
            await pool.call(make_call("time.sleep(30)"))


async def test_what_a_worker_computes_until_it_is_ready_is_not_counted(make_call, make_pool, reports):
    async with make_pool() as pool:
        answer = await pool.call(make_call("while time.process_time() < 1.5: pass"))
    assert answer.value != os.getpid()
    assert reports == []
