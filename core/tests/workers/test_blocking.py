"""Calls that block the event loop of their worker: other calls are not harmed, and errors name the blocking code."""

from collections import Counter

import anyio
import pytest
from sideband.workers import CallTimeout, PlainSandbox, ProtocolViolation, WorkerBlocked, _blocking

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def halves(first, second):
    """Run one case on each event loop. The other half of the combinations runs as `long`."""
    others = [(first, "trio"), (second, "asyncio")]
    return [(first, "asyncio"), (second, "trio"), *(pytest.param(*other, marks=pytest.mark.long) for other in others)]


TOOLS = """
    import gc, json

    FOLDER = os.path.dirname(__file__)

    def busy(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    async def spin(key="spin"):
        await echo.started(key=key)
        while True:
            pass

    async def compute(seconds, key="compute"):
        await echo.started(key=key)
        busy(seconds)
        return os.getpid()

    async def compute_at_once(seconds):
        busy(seconds)
        return os.getpid()

    async def spin_at_once():
        while True:
            pass

    async def hold_the_lock():
        return sum(range(10**12))

    async def sleep(seconds):
        time.sleep(seconds)

    async def spin_in_a_child():
        async def child():
            await echo.started(key="child")
            while True:
                pass
        await asyncio.gather(child())

    async def ignore_cancellation():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    async def cancel_a_child():
        child = asyncio.create_task(pid())
        child.cancel()
        try:
            await child
        except asyncio.CancelledError:
            del child
            gc.collect()
            return "cancelled"

    async def forge_a_stack(name):
        frame = f'  File "{FOLDER}/{name}", line 1 in f'
        while True:
            os.write(2, f"Stack (most recent call first):\\n{frame}\\n".encode())
            time.sleep(0.001)

    async def count_messages():
        from sideband.workers.runtime import running
        runtime = running()[0]
        kinds = vars(runtime).setdefault("kinds", [])
        if not kinds:
            take = runtime._take
            def count(line):
                kinds.append(json.loads(line)["__type__"])
                take(line)
            runtime._channel._on_line = count
        return kinds

    async def lie(line, wait=0):
        await echo.ready()
        time.sleep(wait)
        os.write(3, line.encode() + b"\\n")
        await asyncio.sleep(60)

    async def pause():
        await asyncio.sleep(2)

    async def pid():
        return os.getpid()

    async def mark(number):
        # Not an op: the host would refuse an op of a call that it has assigned to another worker.
        with open(FOLDER + "/marks", "a") as file:
            file.write(f"{number}\\n")
        return os.getpid()

    async def wait(key):
        return await echo.get(key=key)
"""


def line_of(skill, text):
    """Return the number of the first line of the skill's module that contains the text."""
    lines = (skill.folder / "tools.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def places(skill, function):
    """Return the places where an endless loop in the function may be: its two lines alternate."""
    loop = line_of(skill, "while True:" if function == "spin" else "        while True:")
    name = "spin" if function == "spin" else "child"
    return {f"tools.py, line {line}, in {name}" for line in (loop, loop + 1)}


class Counting(PlainSandbox):
    """A sandbox that keeps the workers it has launched."""

    def __init__(self):
        super().__init__()
        self.launched = []

    async def launch(self, request):
        process = await super().launch(request)
        self.launched.append(process)
        return process


@pytest.fixture
def begun(answers, until):
    """Return ``handler`` for `echo.started`, ``wait()`` for the first such op, and the other ops of `answers`."""
    started = []

    async def handler(op, params):
        if op != "echo.started":
            return await answers.handler(op, params)
        started.append(params["key"])
        return None

    async def wait(count=1):
        await until(lambda: len(started) >= count)

    handler.wait = wait
    return handler


@pytest.mark.parametrize(("first", "anyio_backend"), halves("blocking", "quick"))
async def test_quick_call_sent_beside_an_endless_loop_returns(make_skill, make_pool, gather, first):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        blocking = pool.call(skill.call("spin_at_once", timeout=2))
        quick = pool.call(skill.call("pid", timeout=15))
        found = await gather(*((blocking, quick) if first == "blocking" else (quick, blocking)))
    answer, error = found if first == "quick" else reversed(found)
    assert answer.value > 0
    assert isinstance(error, CallTimeout)


@pytest.mark.parametrize("function", ["hold_the_lock", "sleep"])
async def test_call_beside_code_that_lets_no_other_thread_run_returns(make_skill, make_pool, gather, function):
    skill = make_skill(TOOLS)
    arguments = {"seconds": 60} if function == "sleep" else {}
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        blocking = pool.call(skill.call(function, timeout=3, arguments=arguments))
        error, answer = await gather(blocking, pool.call(skill.call("pid", timeout=15)))
    assert answer.value > 0
    assert isinstance(error, CallTimeout)
    text = "sum(range" if function == "hold_the_lock" else "time.sleep"
    assert f"tools.py, line {line_of(skill, text)}, in {function}" in error.message


async def test_call_beside_a_module_that_blocks_while_it_is_imported_returns(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    slow = skill.add_module("slow", "while True: pass\nasync def never(): ...")
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        blocking = pool.call(skill.call("never", module=slow, timeout=2))
        error, answer = await gather(blocking, pool.call(skill.call("pid", timeout=15)))
    assert answer.value > 0
    assert "slow.py, line 3, in <module>" in error.message


async def test_new_call_goes_to_another_worker_while_one_is_blocked(make_skill, make_pool, begun, monkeypatch):
    monkeypatch.setattr(_blocking, "_SECONDS", 600)
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        before = (await pool.call(skill.call("pid"))).value
        async with anyio.create_task_group() as tasks:
            spinning = skill.call("compute", handler=begun, arguments={"seconds": 1.2})
            tasks.start_soon(pool.call, spinning)
            await begun.wait()
            assert (await pool.call(skill.call("pid", timeout=15))).value != before


async def test_sibling_that_has_begun_waits_until_the_block_ends(make_skill, make_pool, gather, answers, begun):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:

        async def block():
            await answers.arrived(1)
            computed = pool.call(skill.call("compute", handler=begun, arguments={"seconds": 1}))

            async def release():
                await begun.wait()
                answers.release("sibling")

            return (await gather(computed, release()))[0]

        sibling = pool.call(skill.call("wait", handler=begun, arguments={"key": "sibling"}))
        waited, computed = await gather(sibling, block())
    assert waited.value == "answer sibling"
    assert computed.value > 0


@pytest.mark.parametrize(("function", "anyio_backend"), halves("spin", "spin_in_a_child"))
async def test_sibling_of_a_replaced_worker_fails_with_the_blocking_line(  # noqa: PLR0917  fixtures
    make_skill, make_pool, gather, answers, begun, function
):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:

        async def block():
            await answers.arrived(1)
            return await pool.call(skill.call(function, handler=begun, timeout=2))

        sibling = pool.call(skill.call("wait", handler=begun, arguments={"key": "sibling"}, timeout=600))
        waited, spun = await gather(sibling, block())
    assert isinstance(waited, WorkerBlocked)
    assert waited.code == "worker.blocked"
    assert waited.where in places(skill, function)
    assert waited.where in waited.message
    assert isinstance(spun, CallTimeout)
    assert spun.message == f"skill.{function} did not end within 2 s; its worker was blocked at {waited.where}"


async def test_deadline_of_a_sibling_does_not_stop_the_call_that_computes(  # noqa: PLR0917  fixtures
    make_skill, make_pool, gather, answers, begun, reports
):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        before = (await pool.call(skill.call("pid"))).value

        async def compute():
            await answers.arrived(1)
            return await pool.call(skill.call("compute", handler=begun, arguments={"seconds": 1.5}))

        sibling = pool.call(skill.call("wait", handler=begun, arguments={"key": "sibling"}, timeout=0.8))
        waited, computed = await gather(sibling, compute())
        assert isinstance(waited, WorkerBlocked)
        assert computed.value == before
    assert reports == []


async def test_each_call_runs_exactly_once_while_workers_are_blocked_and_unblocked(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        calls = []
        for number in range(40):
            # The blocks are about as long as the time after which a call goes to another worker.
            seconds = 0.45 + 0.01 * number
            if number % 10 == 0:
                calls.append(pool.call(skill.call("compute_at_once", arguments={"seconds": seconds})))
            calls.append(pool.call(skill.call("mark", arguments={"number": number})))
        found = await gather(*calls)
    assert not [each for each in found if isinstance(each, Exception)]
    runs = Counter((skill.folder / "marks").read_text().split())
    assert runs == {str(number): 1 for number in range(40)}


async def test_worker_gets_calls_again_after_it_was_blocked(make_skill, make_pool, gather, begun):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(sandbox=sandbox) as pool:
        before = (await pool.call(skill.call("pid"))).value
        for count, other in enumerate([True, False], 1):
            async with anyio.create_task_group() as tasks:
                computing = skill.call("compute", handler=begun, arguments={"seconds": 1})
                tasks.start_soon(pool.call, computing)
                await begun.wait(count)
                assert ((await pool.call(skill.call("pid"))).value == before) is not other
    assert len(sandbox.launched) == 2


async def test_domain_gets_at_most_half_of_the_workers_however_many_calls_block(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    sandbox = Counting()
    async with make_pool(sandbox=sandbox, maximum=4, cancel_grace=0.2) as pool:
        calls = [pool.call(skill.call("spin_at_once", timeout=2)) for _ in range(6)]
        found = await gather(*calls, pool.call(skill.call("pid", domain="another")))
    assert found.pop().value > 0
    assert {type(error) for error in found} <= {CallTimeout, WorkerBlocked}
    assert len(sandbox.launched) == 3


async def test_timeout_of_a_blocking_call_in_its_own_worker_names_the_line(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        with pytest.raises(CallTimeout) as caught:
            await pool.call(skill.call("spin", alone=True, timeout=0.5))
    assert any(place in caught.value.message for place in places(skill, "spin"))


async def test_timeout_of_a_call_that_waits_names_no_line(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        with pytest.raises(CallTimeout) as caught:
            await pool.call(skill.call("ignore_cancellation", timeout=0.1))
    assert caught.value.message == "skill.ignore_cancellation did not end within 0.1 s"


async def test_stack_that_the_host_requested_is_not_logged(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        with pytest.raises(CallTimeout):
            await pool.call(skill.call("spin", timeout=2))
    assert skill.logged == []


@pytest.mark.parametrize("name", ["x" * 700, "\u202e\x1b[2J", "\u2028"])
async def test_forged_stack_is_bounded_and_contains_printable_ascii_only(make_skill, make_pool, name):
    skill = make_skill(TOOLS)
    async with make_pool(cancel_grace=0.2) as pool:
        with pytest.raises(CallTimeout) as caught:
            await pool.call(skill.call("forge_a_stack", arguments={"name": name}, timeout=1.5))
    assert len(caught.value.message) < 400
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


async def test_idle_workers_and_short_calls_are_not_pinged(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        await pool.call(skill.call("count_messages"))
        before = []
        for _ in range(6):
            await anyio.sleep(0.5)
            found = (await pool.call(skill.call("count_messages"))).value
            if found == [*before, "call"]:
                break
            before = found  # a call that takes longer on a loaded machine is pinged
    assert found == [*before, "call"]


async def test_cancelled_child_task_that_never_ran_prints_no_warning(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        assert (await pool.call(skill.call("cancel_a_child"))).value == "cancelled"
    assert skill.logged == []


LIES = {
    "a pong without a ping": ('{"__type__":"pong","number":99}', "a ping that was not sent"),
    "a pong with a text": ('{"__type__":"pong","number":"1"}', "must be an integer"),
    "a late call that had effects": ('{"__type__":"late","__id__":"mine"}', "did not begin a call in time"),
    "an unknown call that begins": ('{"__type__":"begun","__id__":"other"}', "an unknown call"),
    "an unknown call that is late": ('{"__type__":"late","__id__":"other"}', "an unknown call"),
    "a field too many": ('{"__type__":"begun","__id__":"mine","x":1}', "unknown field"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_lie_about_the_begin_of_a_call_or_a_ping_ends_the_worker(make_skill, make_pool, lie):
    line, problem = LIES[lie]
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        with pytest.raises(ProtocolViolation, match=problem):
            await pool.call(skill.call("lie", id="mine", arguments={"line": line}))
    assert len(skill.dispatched) == 1


async def test_call_with_effects_is_not_repeated_when_its_skill_claims_that_it_was_late(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    line = '{"__type__":"late","__id__":"mine"}'
    async with make_pool() as pool:
        await pool.call(skill.call("pid"))
        sibling = pool.call(skill.call("pause"))
        error, _ = await gather(pool.call(skill.call("lie", id="mine", arguments={"line": line, "wait": 1})), sibling)
    assert isinstance(error, (ProtocolViolation, WorkerBlocked))
    assert [op for _, op, _ in skill.dispatched] == ["echo.ready"]
