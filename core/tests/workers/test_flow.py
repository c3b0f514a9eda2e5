"""Flow control in both directions: floods and unread messages cost the host a limited amount of memory and time."""

import time

import anyio
import attrs
import pytest
from sideband.workers import (
    CallHandler,
    CallTimeout,
    ProtocolViolation,
    WorkerExited,
    WorkerLimits,
    WorkerOverLimit,
    _dispatching,
    _pending,
    _worker,
)

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

RAW = """
    import json

    def line(**fields):
        return json.dumps({"__id__": "mine", **fields}).encode() + b"\\n"

    def ask(number, **params):
        return line(__type__="dispatch", __dispatch_id__=f"d-{number}", __caps__=[],
                    __dispatch__={"op": "echo.get", "params": params})

    def write(data):
        os.set_blocking(3, True)
        while data:
            data = data[os.write(3, data):]

    async def pid():
        return os.getpid()

    async def one():
        return await echo.get(key=1)
"""


@pytest.fixture
def small_limit_of_held_bytes(monkeypatch):
    """Let the ops of a worker hold 2 MiB instead of 32 MiB."""
    monkeypatch.setattr(_dispatching, "_MAX_HELD", 2 << 20)


@pytest.mark.usefixtures("small_limit_of_held_bytes")
async def test_reading_pauses_while_running_ops_hold_too_many_bytes(make_skill, make_pool, answers, until):
    skill = make_skill(
        RAW
        + """
    async def many():
        await asyncio.gather(*(echo.get(key=n, data="x" * 900_000) for n in range(5)))
    """
    )
    async with make_pool() as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, skill.call("many", handler=answers.handler))
        await answers.arrived(3)
        # Only answers free memory: each op holds 900 kB, and the limit is 2 MiB. A fourth op would arrive soon.
        with anyio.move_on_after(0.3):
            await answers.arrived(4)
        assert sorted(answers.waiting) == [0, 1, 2]
        for key in range(5):
            await until(lambda key=key: key in answers.waiting)
            answers.release(key)
    assert len(skill.dispatched) == 5


@pytest.mark.usefixtures("small_limit_of_held_bytes")
async def test_call_whose_begin_the_host_reads_later_is_not_sent_again(
    make_skill, make_pool, answers, until, monkeypatch
):
    monkeypatch.setattr(_worker, "BEGIN_SECONDS", 30.0)
    skill = make_skill(
        RAW
        + """
    async def many():
        await asyncio.gather(*(echo.get(key=n, data="x" * 900_000) for n in range(5)))
    """
    )
    assigned = []

    class Counting(CallHandler):
        def assigned(self, isolation):
            assigned.append(isolation)

    async with make_pool() as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, skill.call("many", handler=answers.handler))
        await answers.arrived(3)
        # The host does not read: the report that this call begins waits behind the ops in the worker.
        tasks.start_soon(pool.call, attrs.evolve(skill.call("pid"), handler=Counting()))
        await until(lambda: assigned)
        with anyio.fail_after(20):
            for key in range(5):
                await until(lambda key=key: key in answers.waiting)
                answers.release(key)
    assert len(assigned) == 1


async def test_unread_answers_are_limited(make_skill, make_pool, monkeypatch):
    monkeypatch.setattr(_dispatching, "_MAX_UNREAD", 9 << 20)
    monkeypatch.setattr(_dispatching, "_MAX_HELD", 99 << 20)
    skill = make_skill("""
        async def many():
            asked = [asyncio.create_task(ask(n)) for n in range(12)]
            await asyncio.sleep(0)
            time.sleep(0.7)
            return sorted(await asyncio.gather(*asked))

        async def ask(n):
            try:
                return str(len(await echo.get(key=n)))
            except OpError as error:
                return error.code
    """)
    large = "x" * (1 << 20)

    async def handler(op, params):
        return large

    async with make_pool(write_timeout=20) as pool:
        found = (await pool.call(skill.call("many", handler=handler))).value
    assert found.count(str(1 << 20)) >= 8
    assert "limit.unread_bytes" in found
    assert set(found) == {str(1 << 20), "limit.unread_bytes"}


@both_backends
async def test_worker_that_reads_byte_by_byte_is_killed(make_skill, make_pool):
    skill = make_skill("""
        async def slow():
            waiting = asyncio.create_task(echo.get())
            await asyncio.sleep(0)
            os.set_blocking(3, True)
            while True:
                os.read(3, 1)
                time.sleep(0.01)
    """)

    async def large(op, params):
        return "x" * (4 << 20)

    async with make_pool(write_timeout=0.5) as pool:
        with anyio.fail_after(5), pytest.raises(WorkerExited, match="read nothing for"):
            await pool.call(skill.call("slow", handler=large))


async def test_worker_that_does_not_finish_a_line_is_killed(make_skill, make_pool, reports):
    skill = make_skill(
        RAW
        + """
    async def half(drip):
        write(b'{"__type__":')
        while drip:
            write(b" ")
            time.sleep(0.01)
        time.sleep(30)
    """
    )
    async with make_pool(line_timeout=0.3) as pool:
        for drip in (False, True):
            with pytest.raises(ProtocolViolation, match=r"it did not finish a line within 0.3 s"):
                await pool.call(skill.call("half", id=f"mine-{drip}", arguments={"drip": drip}))
    assert [report.code for report in reports] == ["worker.protocol"] * 2


@both_backends
@pytest.mark.usefixtures("small_limit_of_held_bytes")
async def test_line_timeout_does_not_count_while_reading_is_paused(make_skill, make_pool, answers):
    skill = make_skill(
        RAW
        + """
    async def many():
        large = [ask(n, key=n, data="x" * 900_000) for n in (1, 2, 3)]
        # The host reads the beginning of the last line together with the end of the third message.
        write(b"".join(large) + b"{" + b" " * 70_000)
        write(b'"__type__": "result", "__id__": "mine", "value": "done"}\\n')
        await asyncio.sleep(30)
    """
    )
    async with make_pool(line_timeout=0.3) as pool, anyio.create_task_group() as tasks:

        async def run():
            assert (await pool.call(skill.call("many", id="mine", handler=answers.handler))).value == "done"

        tasks.start_soon(run)
        await answers.arrived(3)
        await anyio.sleep(0.5)
        for key in (1, 2, 3):
            answers.release(key)


async def test_worker_that_floods_its_output_is_throttled_and_then_killed(make_skill, make_pool, reports):
    skill = make_skill("async def flood():\n    while True:\n        os.write(1, b'x' * 65_535 + b'\\n')")
    async with make_pool() as pool:
        call = skill.call("flood")
        call = attrs.evolve(call, launch=attrs.evolve(call.launch, limits=WorkerLimits(output=7 << 20)))
        began = time.monotonic()
        with pytest.raises(WorkerOverLimit, match="output limit of 7 MiB: 7 MiB") as caught:
            await pool.call(call)
        # 4 MiB in a burst, then 3 MiB at 10 MiB per second.
        assert time.monotonic() - began > 0.25
    assert caught.value.code == "worker.output"
    assert [report.code for report in reports] == ["worker.output"]


@pytest.mark.parametrize(
    "fields", ['__id__="mine", text="x" * 60_000', 'text="x" * 60_000', '__id__="mine", text="x" * 70_000']
)
async def test_log_messages_that_bypass_the_runtime_count_as_output(make_skill, make_pool, fields):
    skill = make_skill(f"""
        import json

        def line(**fields):
            return json.dumps({{"__type__": "log", "stream": "stdout", **fields}}).encode() + b"\\n"

        async def flood():
            os.set_blocking(3, True)
            while True:
                os.write(3, line({fields}))
    """)
    async with make_pool() as pool:
        call = skill.call("flood", id="mine")
        call = attrs.evolve(call, launch=attrs.evolve(call.launch, limits=WorkerLimits(output=1 << 20)))
        with pytest.raises(WorkerOverLimit, match="output limit"):
            await pool.call(call)


async def test_printing_is_limited_per_call_and_does_not_end_the_worker(make_skill, make_pool):
    skill = make_skill("""
        async def chatter():
            for _ in range(200):
                print("x" * 60_000)
                await echo.pause()
            return os.getpid()
    """)
    async with make_pool() as pool:
        pids = set()
        for _ in range(2):
            call = skill.call("chatter")
            call = attrs.evolve(call, launch=attrs.evolve(call.launch, limits=WorkerLimits(output=1 << 20)))
            pids.add((await pool.call(call)).value)
    assert len(pids) == 1
    assert len(skill.output("stdout")) == 2 * (4_000_000 // 60_000)


async def test_reports_are_limited_and_the_rest_is_counted(make_skill, make_pool, reports, monkeypatch):
    monkeypatch.setattr(_pending, "MAX_DISPATCHES", 100)
    skill = make_skill(
        RAW
        + """
    async def many():
        for number in range(250):
            try:
                await echo.get()
            except OpError:
                pass
    """
    )
    async with make_pool() as pool:
        await pool.call(skill.call("many"))
    assert [report.code for report in reports] == ["limit.dispatches"] * 101
    assert reports[-1].message == "50 more reports of this kind in this worker"


async def test_answer_has_the_size_of_its_message(make_skill, make_pool):
    skill = make_skill("async def one():\n    return 'x' * 1_000_000")
    async with make_pool() as pool:
        answer = await pool.call(skill.call("one", id="mine"))
    assert answer.size == len(b'{"__type__":"result","__id__":"mine","value":""}') + 1_000_000


@both_backends
@pytest.mark.parametrize("direction", ["SHUT_RD", "SHUT_WR"])
async def test_closing_one_direction_affects_its_worker_only(make_skill, make_pool, gather, direction):
    skill = make_skill(
        RAW
        + """
    async def close(direction):
        import socket
        socket.socket(fileno=os.dup(3)).shutdown(getattr(socket, direction))
        await echo.get()
    """
    )
    neighbor = make_skill(RAW, "neighbor")
    async with make_pool(cancel_grace=0.1) as pool:
        await pool.call(skill.call("pid"))
        found = await gather(
            pool.call(skill.call("close", arguments={"direction": direction}, timeout=0.3)),
            pool.call(neighbor.call("one")),
        )
        assert isinstance(found[0], CallTimeout | WorkerExited)
        assert found[1].value == {"key": 1}
        assert (await pool.call(skill.call("one"))).value == {"key": 1}


FLOODS = {
    "log lines": 'line(__type__="log", stream="stdout", text="x") * 1_000',
    "progress": 'line(__type__="progress", current=1) * 1_000',
    "cancels": 'line(__type__="cancel", __dispatch_id__="d-1").replace(b\'"__id__": "mine", \', b"") * 1_000',
    "huge logs": 'line(__type__="log", stream="stdout", text="x" * (15 << 20))',
    "empty lists": 'b\'{"__type__":"progress","__id__":"mine","x":[\' + b"[]," * 5_000_000 + b"1]}\\n"',
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_other_workers_are_served_while_one_floods_the_wire(make_skill, make_pool, gather, flood):
    skill, hostile = (
        make_skill(RAW, "quiet"),
        make_skill(
            RAW
            + f"""
    async def flood():
        write(ask(1))
        data = {FLOODS[flood]}
        while True:
            write(data)
    """,
            "hostile",
        ),
    )
    async with make_pool(cancel_grace=0.1) as pool:
        await pool.call(skill.call("one"))

        async def serve():
            """Return the host's processor time during each call, which does not depend on other processes."""
            times = []
            end = time.perf_counter() + 0.5
            while time.perf_counter() < end:
                start = time.thread_time()
                await pool.call(skill.call("one"))
                times.append(time.thread_time() - start)
            return sorted(times)

        times, problem = await gather(serve(), pool.call(hostile.call("flood", id="mine", timeout=0.7)))
    assert isinstance(problem, CallTimeout | WorkerOverLimit | ProtocolViolation)
    assert times[len(times) // 2] < 0.05
    # Not the longest: it may contain a garbage collection of the whole test process.
    assert times[len(times) * 9 // 10] < 0.5


async def test_flooding_worker_is_throttled_while_another_is_busy(make_skill, make_pool, gather):
    skill, hostile = (
        make_skill(RAW, "quiet"),
        make_skill(
            RAW
            + """
    async def flood():
        data = line(__type__="log", stream="stdout", text="x") * 1_000
        while True:
            write(data)
        """,
            "hostile",
        ),
    )

    async def call_now_and_then(pool):
        with anyio.move_on_after(1.3):
            while True:
                await pool.call(skill.call("one"))
                await anyio.sleep(0.03)

    async def share(pool):
        """Return the share of a processor that the host uses during a flood."""
        await pool.call(skill.call("one"))
        await pool.call(hostile.call("pid"))
        began, used = time.perf_counter(), time.process_time()
        await gather(call_now_and_then(pool), pool.call(hostile.call("flood", id="mine", timeout=1)))
        return (time.process_time() - used) / (time.perf_counter() - began)

    async with make_pool(cancel_grace=0.1) as pool:
        for _ in range(5):
            # Other load can delay the neighbor, and the flood has no limit while it is idle.
            if (found := await share(pool)) < 0.5:
                break
    # Without the limit of a quarter, the flood takes all time of a processor.
    assert found < 0.5
