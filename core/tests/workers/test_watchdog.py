"""The watchdog: a worker that exceeds a limit is killed with a typed error."""

import sys

import anyio
import attrs
import pytest
from sideband.workers import WorkerLimits, WorkerOverLimit, _watchdog

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def limited(call, **limits):
    return attrs.evolve(call, launch=attrs.evolve(call.launch, limits=WorkerLimits(**limits)))


GREEDY = """
    async def memory():
        taken = []
        while True:
            taken.append(b"x" * (1 << 20))

    async def threads():
        for _ in range(40):
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        await asyncio.sleep(30)

    async def files():
        opened = [os.dup(0) for _ in range(40)]
        await asyncio.sleep(30)

    async def wait():
        await echo.pause()

    async def modest():
        kept = b"x" * (16 << 20), [os.dup(0) for _ in range(8)]
        threading.Thread(target=time.sleep, args=(0.5,)).start()
        await asyncio.sleep(0.5)
        return len(kept)
"""
LIMITS = {"memory": 128 << 20, "threads": 16, "files": 24}
MESSAGES = {
    "memory": r"memory limit of 128 MiB: \d+ MiB",
    "threads": r"threads limit of 16: \d+",
    "files": r"files limit of 24: \d+ descriptors",
}


@pytest.mark.parametrize("what", LIMITS)
async def test_worker_over_a_limit_is_killed_with_all_its_calls(  # noqa: PLR0917  fixtures
    make_skill, make_pool, reports, gather, answers, what
):
    skill = make_skill(GREEDY)
    async with make_pool() as pool:

        async def attack():
            await answers.arrived(1)
            return await pool.call(limited(skill.call(what), **LIMITS))

        def never(op, params):
            return answers.handler(op, {"key": 1})

        found = await gather(pool.call(limited(skill.call("wait", handler=never), **LIMITS)), attack())
        for error in found:
            assert isinstance(error, WorkerOverLimit)
            assert error.code == f"worker.{what}"
        assert found[0] is not found[1]
        with pytest.raises(WorkerOverLimit, match=MESSAGES[what]):
            raise found[1]
        assert (await pool.call(limited(skill.call("modest"), **LIMITS))).value == 2
    assert [report.code for report in reports] == [f"worker.{what}"]


@both_backends
async def test_worker_over_a_limit_is_killed_during_a_write(make_skill, make_pool):
    skill = make_skill("""
        async def greedy():
            waiting = asyncio.create_task(echo.get())
            await asyncio.sleep(0)
            opened = [os.dup(0) for _ in range(40)]
            time.sleep(60)
    """)

    async def large(op, params):
        return "x" * (4 << 20)

    began = anyio.current_time()
    async with make_pool(write_timeout=30) as pool:
        with pytest.raises(WorkerOverLimit):
            await pool.call(limited(skill.call("greedy", handler=large), **LIMITS))
    # The host did not wait for the write.
    assert anyio.current_time() - began < 20


@pytest.fixture
def short_idle_time(monkeypatch):
    """Allow an idle worker 0.3 s of processor time instead of 1 s."""
    monkeypatch.setattr(_watchdog, "_IDLE_SECONDS", 0.3)


@pytest.mark.usefixtures("short_idle_time")
async def test_busy_thread_without_calls_kills_the_worker(make_skill, make_pool, reports, until):
    skill = make_skill("""
        def spin():
            while True:
                pass

        async def leave():
            threading.Thread(target=spin).start()
            return os.getpid()
    """)
    async with make_pool() as pool:
        first = (await pool.call(skill.call("leave"))).value
        await until(lambda: reports)
        assert (await pool.call(skill.call("leave"))).value != first
    assert [report.code for report in reports] == ["worker.processor"]
    assert "processor limit of 0.3 s" in reports[0].message


# After its main thread has exited, the kernel shows the process as a zombie without memory and descriptors.
WITHOUT_ITS_FIRST_THREAD = """
    import ctypes, json, os, select, threading, time
    from sideband.workers.runtime import running

    def go_on(call):
        time.sleep(0.1)
        answer = json.dumps({"__type__": "result", "__id__": call, "value": os.getpid()}).encode() + b"\\n"
        select.select([], [3], [])
        os.write(3, answer)
        rest()

    async def leave():
        threading.Thread(target=go_on, args=(running()[1].id,)).start()
        thread_exit = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
        ctypes.CDLL(None).syscall(thread_exit, 0)

    def rest():
"""
REST = {
    "memory": "        kept = b'x' * (144 << 20)\n        time.sleep(30)",
    "files": "        kept = [os.dup(0) for _ in range(40)]\n        time.sleep(30)",
    "processor": "        while True: pass",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux can the main thread exit before the process")
@pytest.mark.parametrize("what", REST)
async def test_limits_apply_after_the_main_thread_has_exited(make_skill, make_pool, reports, until, *, what, request):
    if what == "processor":
        request.getfixturevalue("short_idle_time")
    skill = make_skill(WITHOUT_ITS_FIRST_THREAD + REST[what])
    async with make_pool() as pool:
        first = (await pool.call(limited(skill.call("leave"), memory=128 << 20, files=24))).value
        await until(lambda: reports)
        assert (await pool.call(skill.call("leave"))).value != first
    assert reports[0].code == f"worker.{what}"


@pytest.mark.usefixtures("short_idle_time")
async def test_processor_time_within_calls_is_not_limited(make_skill, make_pool, reports):
    skill = make_skill("""
        async def compute():
            end = time.process_time() + 0.4
            while time.process_time() < end:
                pass
            return os.getpid()

        async def pid():
            return os.getpid()
    """)
    async with make_pool() as pool:
        pids = set()
        for _ in range(2):
            pids.add((await pool.call(skill.call("compute"))).value)
            # Let the watchdog check the idle worker: the processor time of finished calls must not count.
            await anyio.sleep(0.3)
        pids.add((await pool.call(skill.call("pid"))).value)
    assert len(pids) == 1
    assert reports == []
