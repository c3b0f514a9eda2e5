"""Crashes, hangs and cancellation: which calls fail, and which workers are replaced."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from sideband.ops import OpFailed, OpResultInvalid
from sideband.workers import (
    CallTimeout,
    Isolation,
    LaunchRequest,
    PlainSandbox,
    Probe,
    SkillFailed,
    WorkerExited,
    WorkerPool,
    WorkerStartFailed,
    _worker,
    launch,
)

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


TOOLS = """
    async def wait(key="wait"):
        return await echo.get(key=key)

    async def pid():
        return os.getpid()

    async def leave():
        print("about to leave", file=sys.stderr, flush=True)
        os.write(2, b"last words\\n")
        os._exit(7)

    async def die():
        os.kill(os.getpid(), 9)

    async def fault():
        import ctypes
        ctypes.string_at(0)

    async def close():
        os.close(3)
        time.sleep(30)

    async def spin():
        while True:
            pass

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    async def sleep():
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await echo.cleaned()
            raise
"""


@pytest.mark.parametrize(
    ("function", "how"),
    [
        ("leave", r"exited with code 7 \(last output: .*about to leave"),
        ("die", "killed by SIGKILL"),
        ("fault", "killed by SIGSEGV"),
        ("close", "closed its channel"),
    ],
)
async def test_crash_fails_all_calls_of_the_worker_and_the_next_call_gets_a_new_one(  # noqa: PLR0917  fixtures
    make_skill, make_pool, gather, answers, function, how, monkeypatch
):
    if function == "close":  # its process does not exit, so the host waits for it in vain
        monkeypatch.setattr(_worker, "_END_GRACE", 0.1)
    skill = make_skill(TOOLS)
    other = make_skill(TOOLS, "other")
    async with make_pool() as pool:
        async with anyio.create_task_group() as tasks:

            async def answer_the_other():
                await answers.arrived(4)
                crashed = await gather(pool.call(skill.call(function)))
                assert isinstance(crashed[0], WorkerExited)
                answers.release("other")

            tasks.start_soon(answer_the_other)
            calls = [pool.call(skill.call("wait", handler=answers.handler, arguments={"key": n})) for n in range(3)]
            calls.append(pool.call(other.call("wait", handler=answers.handler, arguments={"key": "other"})))
            *failed, finished = await gather(*calls)
        assert finished.value == "answer other"
        for error in failed:
            assert isinstance(error, WorkerExited)
            with pytest.raises(WorkerExited, match=how):
                raise error
        assert sorted(answers.cancelled) == [0, 1, 2]
        assert (await pool.call(skill.call("pid"))).value > 0


@both_backends
async def test_deadline_cancels_the_call_but_keeps_the_worker(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        before = await pool.call(skill.call("pid"))
        with pytest.raises(CallTimeout, match=r"skill.sleep did not end within 0.1 s"):
            await pool.call(skill.call("sleep", timeout=0.1))
        after = await pool.call(skill.call("pid"))
    assert after == before
    assert [op for _, op, _ in skill.dispatched] == ["echo.cleaned"]


@pytest.mark.parametrize("function", ["spin", "stubborn"])
async def test_worker_of_a_call_that_ignores_cancellation_is_replaced(make_skill, make_pool, reports, function, until):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        before = (await pool.call(skill.call("pid"))).value
        with pytest.raises(CallTimeout):
            await pool.call(skill.call(function, timeout=0.1))
        after = (await pool.call(skill.call("pid"))).value
        await until(lambda: not exists(before))
    assert after != before
    assert [report.code for report in reports] == ["worker.stuck"]


@both_backends
async def test_other_calls_of_a_stuck_worker_may_finish(make_skill, make_pool, gather, answers, until):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.1) as pool:
        before = (await pool.call(skill.call("pid"))).value
        seen = []

        async def stubborn_then_new():
            await answers.arrived(1)
            seen.append(await gather(pool.call(skill.call("stubborn", timeout=0.1))))
            seen.append((await pool.call(skill.call("pid"))).value)
            seen.append(exists(before))
            answers.release("neighbor")

        neighbor = skill.call("wait", handler=answers.handler, arguments={"key": "neighbor"})
        neighbor, _ = await gather(pool.call(neighbor), stubborn_then_new())
        assert neighbor.value == "answer neighbor"
        assert isinstance(seen[0][0], CallTimeout)
        assert seen[1] != before
        assert seen[2]
        await until(lambda: not exists(before))


@both_backends
async def test_cancelling_the_caller_cancels_the_call_and_its_dispatches(make_skill, make_pool, answers):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        before = await pool.call(skill.call("pid"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.call, skill.call("wait", handler=answers.handler))
            await answers.arrived(1)
            tasks.cancel_scope.cancel()
        assert answers.cancelled == ["wait"]
        assert await pool.call(skill.call("pid")) == before


@both_backends
async def test_cancelling_the_caller_lets_the_skill_clean_up(make_skill, make_pool, until):
    skill = make_skill("""
        async def one():
            try:
                await echo.started()
                await asyncio.sleep(1000)
            finally:
                await echo.cleaned()
    """)
    async with make_pool(cancel_grace=5) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.call, skill.call("one"))
            await until(lambda: skill.dispatched)
            tasks.cancel_scope.cancel()
        assert [op for _, op, _ in skill.dispatched] == ["echo.started", "echo.cleaned"]


@both_backends
async def test_call_cancelled_while_it_is_sent_does_not_corrupt_the_stream(make_skill, make_pool, until, reports):
    skill = make_skill("""
        async def block():
            await dispatch("progress.report")
            time.sleep(0.5)

        async def take(text):
            return len(text)

        async def pid():
            return os.getpid()
    """)
    async with make_pool(cancel_grace=5, write_timeout=5) as pool:
        before = await pool.call(skill.call("pid"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.call, skill.call("block"))
            await until(lambda: skill.dispatched)
            with anyio.move_on_after(0.05) as scope:
                await pool.call(skill.call("take", arguments={"text": "x" * (8 << 20)}))
        assert scope.cancelled_caught
        assert await pool.call(skill.call("pid")) == before
    assert reports == []


@both_backends
async def test_op_that_the_skill_abandons_is_cancelled_in_the_host(make_skill, make_pool, answers, until):
    skill = make_skill("""
        async def one():
            try:
                async with asyncio.timeout(0.05):
                    await echo.get(key="slow")
            except TimeoutError:
                return await dispatch("echo.after")
    """)

    async def handler(op, params):
        if op == "echo.get":
            return await answers.handler(op, params)
        await until(lambda: answers.cancelled)
        return answers.cancelled

    async with make_pool() as pool:
        assert (await pool.call(skill.call("one", handler=handler))).value == ["slow"]


@both_backends
async def test_dispatches_that_outlive_their_call_are_cancelled(make_skill, make_pool, answers):
    skill = make_skill("""
        async def one():
            os.write(3, b'{"__type__":"dispatch","__id__":"mine","__dispatch_id__":"d-1","__caps__":[],'
                        b'"__dispatch__":{"op":"echo.get","params":{"key":"left"}}}\\n')
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one", handler=answers.handler, id="mine"))
        assert answers.cancelled == ["left"]


@both_backends
async def test_ops_of_a_cancelled_call_end_before_the_call(make_skill, make_pool, answers, reports):
    skill = make_skill("""
        async def ready():
            pass

        async def one():
            waiting = asyncio.create_task(echo.get(key="waiting"))
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                try:
                    await waiting
                except OpError as error:
                    await echo.seen(code=error.code)
    """)

    async def handler(op, params):
        if op == "echo.get":
            await answers.handler(op, params)

    async with make_pool(cancel_grace=5) as pool:
        await pool.call(skill.call("ready"))  # start the worker before the timeout begins
        with pytest.raises(CallTimeout):
            await pool.call(skill.call("one", handler=handler, timeout=0.5))
    assert [params["code"] for _, op, params in skill.dispatched if op == "echo.seen"] == ["op.cancelled"]
    assert reports == []


@both_backends
async def test_failing_handler_gives_one_typed_answer_and_does_not_affect_others(make_skill, make_pool, reports):
    skill = make_skill("""
        async def ask(verb):
            try:
                return await dispatch("test." + verb)
            except OpError as error:
                return [error.code, error.message]

        async def all_of_them(verbs):
            return await asyncio.gather(*(ask(verb) for verb in verbs))
    """)

    async def handler(op, params):
        match op:
            case "test.raises":
                raise RuntimeError("the password is hunter2")
            case "test.typed":
                raise OpFailed("typed", code="test.own")
            case "test.result":
                raise OpResultInvalid(op, "expected an int, got a str")
            case "test.unsendable":
                return object()
            case "test.nan":
                return float("nan")
            case "test.large":
                return "x" * (17 << 20)
        return "fine"

    verbs = ["raises", "typed", "result", "unsendable", "nan", "large", "fine"]
    async with make_pool() as pool:
        answer = await pool.call(skill.call("all_of_them", handler=handler, arguments={"verbs": verbs}))
    codes = [found[0] for found in answer.value[:-1]]
    assert codes == ["op.failed", "test.own", "op.result", "op.result", "op.result", "op.result"]
    assert answer.value[-1] == "fine"
    assert "hunter2" not in str(answer.value)
    assert "hunter2" not in str(reports)


async def test_descriptors_are_closed_after_a_crash(make_skill, make_pool, gather, until, monkeypatch):
    monkeypatch.setattr(_worker, "_END_GRACE", 0.1)
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        before = open_descriptors()
        for function in ("leave", "die", "close"):
            await gather(pool.call(skill.call(function)))
            await pool.call(skill.call("pid"))
        await until(lambda: open_descriptors() == before)


async def test_worker_that_cannot_be_started_raises_with_the_reason(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    no_sdk = LaunchRequest(snapshot=skill.folder, sdk=skill.folder)
    async with WorkerPool(PlainSandbox(Path("/nowhere/python"))) as pool:
        found = await gather(*(pool.call(skill.call("pid")) for _ in range(3)))
    async with make_pool() as pool:
        with pytest.raises(WorkerStartFailed, match=r"exited with code 2 .*open file.* before it was ready"):
            await pool.call(skill.call("pid", launch=no_sdk))
        assert (await pool.call(skill.call("pid"))).value
    assert all(isinstance(error, WorkerStartFailed) for error in found)
    assert "/nowhere/python" in str(found[0])


class KilledAtStart(PlainSandbox):
    """A sandbox in which the first workers are killed before they are ready, as with their parent."""

    def __init__(self, count):
        super().__init__()
        self.left = count

    async def launch(self, request):
        worker = await super().launch(request)
        if self.left:
            self.left -= 1
            worker.kill()
        return worker


async def test_worker_killed_during_its_start_is_replaced_once(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool(sandbox=KilledAtStart(1)) as pool:
        assert (await pool.call(skill.call("pid"))).value
    sandbox = KilledAtStart(3)
    async with make_pool(sandbox=sandbox) as pool:
        with pytest.raises(WorkerStartFailed, match="was killed by SIGKILL before it was ready"):
            await pool.call(skill.call("pid"))
        assert sandbox.left == 1
        assert (await pool.call(skill.call("pid"))).value


@pytest.mark.parametrize(
    ("lockdown", "how", "start_timeout"),
    [
        pytest.param(
            "def apply(plan):\n    raise OSError('seccomp is not there: ' + plan['name'])",
            "97 .*seccomp is not there: x",
            30,
            id="raises",
        ),
        pytest.param("def apply(plan)", "97 .*SyntaxError", 30, id="invalid"),
        pytest.param("while True: pass", "not ready within", 0.2, id="hangs"),
    ],
)
async def test_worker_with_a_failed_lock_down_runs_no_skill_code(  # noqa: PLR0917  fixtures
    make_skill, make_pool, tmp_path, lockdown, how, start_timeout
):
    class Locked(PlainSandbox):
        async def probe(self):
            return Probe(Isolation.FULL)

        async def launch(self, request):
            return await launch(request, isolation=Isolation.FULL, lockdown=file, plan={"name": "x"})

    file = tmp_path / "lockdown.py"
    file.write_text(lockdown)
    skill = make_skill(f"open({str(tmp_path / 'canary')!r}, 'w')")
    async with make_pool(sandbox=Locked(), start_timeout=start_timeout) as pool:
        with pytest.raises(WorkerStartFailed, match=how):
            await pool.call(skill.call("one"))
    assert not (tmp_path / "canary").exists()


async def test_lock_down_runs_before_the_import_path_is_extended(make_skill, make_pool, tmp_path):
    class Locked(PlainSandbox):
        async def launch(self, request):
            return await launch(request, isolation=Isolation.FULL, lockdown=file, plan={"out": str(tmp_path / "seen")})

    file = tmp_path / "lockdown.py"
    file.write_text(
        "import json, sys, threading\n"
        "def apply(plan):\n"
        "    seen = [sys.path, threading.active_count(), 'asyncio' in sys.modules]\n"
        "    open(plan['out'], 'w').write(json.dumps(seen))\n"
        "    return {'steps': []}\n"
    )
    skill = make_skill(TOOLS)
    async with make_pool(sandbox=Locked()) as pool:
        answer = await pool.call(skill.call("pid"))
    path, threads, asyncio_loaded = json.loads((tmp_path / "seen").read_text())
    assert answer.isolation is Isolation.FULL
    assert str(skill.sdk) not in path
    assert (threads, asyncio_loaded) == (1, False)


def test_workers_die_with_their_host(make_skill):
    """The host is killed, and cannot clean up. One of its workers waits for an op, the other one is in a busy loop."""
    skill = make_skill("""
        async def wait():
            await dispatch("progress.report", {"pid": os.getpid()})
            await echo.get()

        async def spin():
            await dispatch("progress.report", {"pid": os.getpid()})
            while True:
                pass
    """)
    host = f"""
import anyio, sys
from pathlib import Path
from sideband.workers import *

class Handler(CallHandler):
    async def dispatch(self, op, params):
        print(params["pid"], flush=True)
        await anyio.sleep_forever()

async def main():
    snapshot, sdk = Path({str(skill.folder)!r}), Path({str(skill.sdk)!r})
    launch = LaunchRequest(snapshot=snapshot, sdk=sdk)
    async with WorkerPool(PlainSandbox()) as pool, anyio.create_task_group() as tasks:
        for name in ("wait", "spin"):
            call = WorkerCall(id=name, tool="skill." + name, domain=name, launch=launch, function=name,
                              module=str(snapshot / "tools.py"), arguments={{}}, handler=Handler())
            tasks.start_soon(pool.call, call)

anyio.run(main)
"""
    process = subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE, env={**os.environ})
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 10
    try:
        while left := [pid for pid in pids if exists(pid)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.01)
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def test_exception_of_a_skill_is_not_reported_as_a_worker_failure(make_skill, make_pool, reports):
    skill = make_skill("async def one():\n    raise ValueError('x')")
    async with make_pool() as pool:
        with pytest.raises(SkillFailed):
            await pool.call(skill.call("one"))
    assert reports == []
