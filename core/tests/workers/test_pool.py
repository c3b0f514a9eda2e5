"""The pool: one worker per trust domain, retirement of idle workers, and fairness between domains."""

import os

import anyio
import pytest
from sideband.workers import CallTimeout, PlainSandbox, SkillFailed, WorkerError, WorkerExited, WorkerStartFailed

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

TOOLS = """
    async def wait(key="wait"):
        return await echo.get(key=key)

    async def pid():
        return os.getpid()

    async def sleep():
        await asyncio.sleep(1000)

    async def fail():
        raise ValueError

    async def die():
        os.kill(os.getpid(), 9)

    async def spin():
        while True:
            pass
"""


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@both_backends
async def test_concurrent_calls_of_a_domain_start_one_worker(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        found = await gather(*(pool.call(skill.call("pid")) for _ in range(200)))
    assert len({answer.value for answer in found}) == 1


async def test_idle_worker_is_retired(make_skill, make_pool, until):
    skill = make_skill(TOOLS)
    async with make_pool(idle_seconds=0.1) as pool:
        before = (await pool.call(skill.call("pid"))).value
        await until(lambda: not exists(before))
        assert (await pool.call(skill.call("pid"))).value != before


async def test_ended_worker_leaves_no_state_in_the_pool(make_skill, make_pool, until):
    skill = make_skill(TOOLS)
    async with make_pool(idle_seconds=0.1) as pool:
        await pool.call(skill.call("pid"))
        await until(lambda: not pool._time.shares and not pool._slots and not pool._shared)


async def test_idle_worker_is_replaced_at_the_maximum(make_skill, make_pool, gather, until):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=2) as pool:
        found = await gather(*(pool.call(skill.call("pid", domain=f"domain {n}")) for n in range(6)))
        pids = [answer.value for answer in found]
        assert len(set(pids)) == 6
        await until(lambda: sum(map(exists, pids)) <= 2)


@both_backends
async def test_domain_waits_for_a_worker_until_a_call_ends(make_skill, make_pool, gather, answers):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=1) as pool:
        order = []

        async def first():
            await pool.call(skill.call("wait", handler=answers.handler))
            order.append("first")

        async def second():
            await answers.arrived(1)
            await pool.call(skill.call("pid", domain="other"))
            order.append("second")

        async def release():
            await answers.arrived(1)
            await anyio.wait_all_tasks_blocked()
            order.append("released")
            answers.release("wait")

        await gather(first(), second(), release())
    assert order == ["released", "first", "second"]


@both_backends
async def test_leaving_the_pool_kills_its_workers(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        pids = [(await pool.call(skill.call("pid", domain=str(n)))).value for n in range(3)]
        assert all(map(exists, pids))
    assert not any(map(exists, pids))


class Unclosable(PlainSandbox):
    """A sandbox whose workers raise after they are closed."""

    async def launch(self, request):
        process = await super().launch(request)
        close = process.close

        async def fail():
            await close()
            raise OSError("the disk is gone")

        process.close = fail
        return process


@both_backends
async def test_failure_to_close_a_worker_does_not_affect_others(make_skill, make_pool, reports, until, caplog):
    skill = make_skill(TOOLS)
    async with make_pool(sandbox=Unclosable()) as pool:
        kept = (await pool.call(skill.call("pid", domain="kept"))).value
        with pytest.raises(WorkerExited):
            await pool.call(skill.call("die", domain="ended"))
        await until(lambda: "worker.failed" in [report.code for report in reports])
        assert (await pool.call(skill.call("pid", domain="kept"))).value == kept
        assert (await pool.call(skill.call("pid", domain="ended"))).value != kept
    assert "the disk is gone" in caplog.text


@both_backends
async def test_exception_of_the_body_is_not_wrapped(make_pool):
    with pytest.raises(KeyError, match="mine"):
        async with make_pool():
            raise KeyError("mine")


class Counting(PlainSandbox):
    """A sandbox that collects the launched workers. Launching blocks until ``may_launch`` is set."""

    def __init__(self):
        super().__init__()
        self.launched = []
        self.may_launch = anyio.Event()
        self.may_launch.set()

    async def launch(self, request):
        await self.may_launch.wait()
        process = await super().launch(request)
        self.launched.append(process)
        return process


@pytest.fixture
def held(answers):
    """Return a function that creates a call that blocks until ``answers.release(key)``."""
    return lambda skill, key, **options: skill.call(
        "wait", handler=answers.handler, arguments={"key": key}, **{"domain": key, **options}
    )


async def test_exclusive_call_gets_its_own_worker_that_ends_with_it(make_skill, make_pool, gather, until):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        shared = await pool.call(skill.call("pid"))
        alone = await gather(*(pool.call(skill.call("pid", alone=True)) for _ in range(3)))
        pids = {shared.value, *(answer.value for answer in alone)}
        assert len(pids) == 4
        await until(lambda: sum(map(exists, pids)) == 1)
        assert await pool.call(skill.call("pid")) == shared


@pytest.mark.parametrize("function", ["fail", "die", "spin"])
async def test_worker_of_an_exclusive_call_ends_after_any_outcome(make_skill, make_pool, gather, until, function):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(sandbox=sandbox, cancel_grace=0.1) as pool:
        (error,) = await gather(pool.call(skill.call(function, alone=True, timeout=0.5)))
        assert isinstance(error, (SkillFailed, WorkerExited, CallTimeout))
        await until(lambda: not exists(sandbox.launched[0].pid))


@both_backends
async def test_worker_of_an_exclusive_call_ends_when_its_caller_is_cancelled(
    make_skill, make_pool, answers, held, until
):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(sandbox=sandbox) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.call, held(skill, "a", alone=True))
            await answers.arrived(1)
            tasks.cancel_scope.cancel()
        await until(lambda: not exists(sandbox.launched[0].pid))


async def test_exclusive_calls_of_a_domain_use_at_most_half_of_the_workers(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=4) as pool, anyio.create_task_group() as tasks:
        for key in range(6):
            tasks.start_soon(pool.call, held(skill, key, alone=True, domain="greedy"))
        await answers.arrived(2)
        for domain in ("one", "two"):
            assert (await pool.call(skill.call("pid", domain=domain))).value
        assert len(answers.waiting) == 2
        tasks.cancel_scope.cancel()


async def test_domains_take_turns_with_exclusive_calls(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=1) as pool, anyio.create_task_group() as tasks:
        for key, domain in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")):
            tasks.start_soon(pool.call, held(skill, key, alone=True, domain=domain))
            await anyio.wait_all_tasks_blocked()
        for count in range(1, 5):
            await answers.arrived(count)
            answers.release(list(answers.waiting)[-1])
    assert list(answers.waiting) == ["a1", "a2", "b1", "a3"]


async def test_idle_worker_is_replaced_for_an_exclusive_call_of_its_domain(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=3) as pool:
        shared = (await pool.call(skill.call("pid"))).value
        assert (await pool.call(skill.call("pid", alone=True))).value != shared


async def test_busy_domain_does_not_starve_another(make_skill, make_pool, answers, held, until):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=1) as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, held(skill, 0, domain="busy"))
        await answers.arrived(1)
        other = []

        async def call_other():
            other.append(await pool.call(skill.call("pid", domain="other")))

        tasks.start_soon(call_other)
        await anyio.wait_all_tasks_blocked()
        # The domain is never idle: its next call arrives before the previous one ends.
        for key in range(1, 4):
            tasks.start_soon(pool.call, held(skill, key, domain="busy"))
            await anyio.wait_all_tasks_blocked()
            if key == 1:
                answers.release(0)
        await until(lambda: other)
        await answers.arrived(4)
        for key in range(1, 4):
            answers.release(key)


async def test_only_as_many_workers_leave_as_are_needed(make_skill, make_pool, answers, held, until):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(maximum=3, sandbox=sandbox) as pool, anyio.create_task_group() as tasks:
        for count, domain in enumerate("abc", 1):
            tasks.start_soon(pool.call, held(skill, domain))
            await answers.arrived(count)
        longest, *others = sandbox.launched
        tasks.start_soon(pool.call, skill.call("pid", domain="other"))
        await anyio.wait_all_tasks_blocked()
        stay = [(await pool.call(skill.call("pid", domain=domain))).value for domain in "bc"]
        assert stay == [process.pid for process in others]
        answers.release("a")
        await until(lambda: not exists(longest.pid))
        for domain in "bc":
            answers.release(domain)


async def test_worker_in_use_for_longest_leaves_first(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=2) as pool, anyio.create_task_group() as tasks:
        older = (await pool.call(skill.call("pid", domain="a"))).value
        for count, domain in enumerate("ba", 1):
            tasks.start_soon(pool.call, held(skill, domain))
            await answers.arrived(count)
        tasks.start_soon(pool.call, skill.call("pid", domain="other"))
        await anyio.wait_all_tasks_blocked()
        assert (await pool.call(skill.call("pid", domain="a"))).value == older
        for domain in "ba":
            answers.release(domain)


async def test_worker_idle_for_longest_leaves_first(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(maximum=2, sandbox=sandbox) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.call, held(skill, "a"))
            await answers.arrived(1)
            await pool.call(skill.call("pid", domain="b"))
            answers.release("a")
        await pool.call(skill.call("pid", domain="other"))
        assert (await pool.call(skill.call("pid", domain="a"))).value == sandbox.launched[0].pid


@pytest.mark.parametrize("options", [{"timeout": 3600}, {"alone": True}])
async def test_worker_with_a_long_call_is_not_chosen_to_leave(make_skill, make_pool, answers, held, options):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=2) as pool, anyio.create_task_group() as tasks:
        for count, call in enumerate((held(skill, "long", **options), held(skill, "short")), 1):
            tasks.start_soon(pool.call, call)
            await answers.arrived(count)
        tasks.start_soon(pool.call, held(skill, "other"))
        await anyio.wait_all_tasks_blocked()
        # The domain `short` is never idle, but its worker leaves nevertheless.
        tasks.start_soon(pool.call, held(skill, "next", domain="short"))
        await anyio.wait_all_tasks_blocked()
        answers.release("short")
        await answers.arrived(3)
        answers.release("other")
        await answers.arrived(4)
        for key in ("long", "next"):
            answers.release(key)


@both_backends
async def test_cancelled_waiter_makes_no_further_worker_leave(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(maximum=2, sandbox=sandbox) as pool, anyio.create_task_group() as tasks:
        for count, domain in enumerate("ab", 1):
            tasks.start_soon(pool.call, held(skill, domain))
            await answers.arrived(count)
        for domain in "cd":
            with anyio.move_on_after(0.05):
                await pool.call(skill.call("pid", domain=domain))
        assert (await pool.call(skill.call("pid", domain="b"))).value == sandbox.launched[1].pid
        for domain in "ab":
            answers.release(domain)


@both_backends
async def test_calls_waiting_for_a_leaving_worker_are_run(make_skill, make_pool):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    sandbox.may_launch = anyio.Event()
    pids = []

    async def call(domain):
        pids.append((await pool.call(skill.call("pid", domain=domain))).value)

    async with make_pool(maximum=1, sandbox=sandbox) as pool, anyio.create_task_group() as tasks:
        for domain in "aab":
            tasks.start_soon(call, domain)
            await anyio.wait_all_tasks_blocked()
        sandbox.may_launch.set()
    assert [process.pid for process in sandbox.launched] == [pids[0], pids[2]]
    assert pids[0] == pids[1]


@both_backends
async def test_no_worker_is_started_for_a_call_cancelled_while_waiting(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(maximum=1, sandbox=sandbox) as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, held(skill, "first"))
        await answers.arrived(1)
        for alone in (False, True):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(pool.call, skill.call("pid", domain="cancelled", alone=alone))
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
        answers.release("first")
        assert (await pool.call(skill.call("pid", domain="last"))).value == sandbox.launched[-1].pid
        assert len(sandbox.launched) == 2


@both_backends
async def test_no_worker_is_started_for_a_call_that_is_already_cancelled(make_skill, make_pool):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(sandbox=sandbox) as pool:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await pool.call(skill.call("pid"))
        await anyio.wait_all_tasks_blocked()
        assert sandbox.launched == []
        assert (await pool.call(skill.call("pid"))).value == sandbox.launched[0].pid


@both_backends
async def test_cancelled_start_of_an_exclusive_call_releases_its_permit(make_skill, make_pool, until):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    sandbox.may_launch = anyio.Event()
    async with make_pool(maximum=1, sandbox=sandbox) as pool:
        with anyio.move_on_after(0.05):
            await pool.call(skill.call("pid", alone=True))
        sandbox.may_launch.set()
        assert (await pool.call(skill.call("pid", domain="other"))).value == sandbox.launched[0].pid


@both_backends
async def test_waiting_for_a_worker_counts_toward_the_timeout(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(maximum=1, sandbox=sandbox) as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, held(skill, "first"))
        await answers.arrived(1)
        with pytest.raises(CallTimeout, match=r"skill.pid did not end within 0.1 s") as caught:
            await pool.call(skill.call("pid", domain="late", timeout=0.1))
        assert "all 1 workers" in caught.value.hint
        answers.release("first")
    assert len(sandbox.launched) == 1


async def test_starting_a_worker_counts_toward_the_timeout(make_skill, make_pool):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    sandbox.may_launch = anyio.Event()
    async with make_pool(sandbox=sandbox) as pool:
        with pytest.raises(CallTimeout) as caught:
            await pool.call(skill.call("pid", timeout=0.1))
        assert "was not ready" in caught.value.hint
        sandbox.may_launch.set()
        assert (await pool.call(skill.call("pid"))).value


async def test_time_spent_waiting_reduces_the_time_in_the_worker(make_skill, make_pool):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    sandbox.may_launch = anyio.Event()

    async with make_pool(sandbox=sandbox) as pool, anyio.create_task_group() as tasks:

        async def let_launch():
            await anyio.sleep(0.5)
            sandbox.may_launch.set()

        tasks.start_soon(let_launch)
        before = anyio.current_time()
        with pytest.raises(CallTimeout):
            await pool.call(skill.call("sleep", timeout=0.9))
        assert anyio.current_time() - before < 1.35


@both_backends
async def test_no_call_is_lost_while_a_worker_is_retired(make_skill, make_pool):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(idle_seconds=0.001, sandbox=sandbox) as pool:
        for _ in range(10):
            assert (await pool.call(skill.call("pid"))).value == sandbox.launched[-1].pid
            await anyio.sleep(0.001)


@both_backends
async def test_leaving_the_pool_fails_each_call_with_the_matching_error(make_skill, make_pool, answers, held):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    pool = make_pool(maximum=2, sandbox=sandbox)
    failed = {}

    async def call(key):
        try:
            await pool.call(held(skill, key))
        except WorkerError as error:
            failed[key] = error

    async with anyio.create_task_group() as tasks:
        async with pool:
            tasks.start_soon(call, "running")
            await answers.arrived(1)
            sandbox.may_launch = anyio.Event()
            for key in ("starting", "waiting"):
                tasks.start_soon(call, key)
                await anyio.wait_all_tasks_blocked()
        await call("late")
    assert {key: type(error) for key, error in failed.items()} == {
        "running": WorkerExited,
        "starting": WorkerStartFailed,
        "waiting": WorkerStartFailed,
        "late": WorkerStartFailed,
    }
    assert "because the host closed" in str(failed["running"])
    assert "the host is closed" in str(failed["late"])
