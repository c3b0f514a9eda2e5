"""Hostile workers: protocol violations and resource limits. The skills write to the protocol's descriptor directly."""

import json
import time

import anyio
import pytest
from sideband.workers import ProtocolViolation, WorkerExited, _pending, _worker

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

RAW = """
    def line(**fields):
        import json
        os.write(3, json.dumps(fields).encode() + b"\\n")

    def forge(id, number, op="echo.forged", caps=(), **params):
        line(__type__="dispatch", __id__=id, __dispatch_id__=f"d-{number}", __caps__=list(caps),
             __dispatch__={"op": op, "params": params})

    async def say(data):
        os.write(3, data)
        await asyncio.sleep(30)

    async def pid():
        return os.getpid()

    async def wait(key="wait"):
        return await echo.get(key=key)
"""

DISPATCH = {
    "__type__": "dispatch",
    "__id__": "mine",
    "__dispatch_id__": "d-1",
    "__caps__": [],
    "__dispatch__": {"op": "echo.get", "params": {}},
}


def changed(**fields):
    return json.dumps({**DISPATCH, **fields}).encode() + b"\n"


VIOLATIONS = {
    "an unknown call": changed(__id__="made-up"),
    "a result for an unknown call": b'{"__type__":"result","__id__":"made-up","value":1}\n',
    "a log for an unknown call": b'{"__type__":"log","__id__":"made-up","stream":"stdout","text":""}\n',
    "progress for an unknown call": b'{"__type__":"progress","__id__":"made-up"}\n',
    "a duplicate dispatch id": changed() + changed(),
    "a decreasing dispatch id": changed(__dispatch_id__="d-5") + changed(__dispatch_id__="d-4"),
    "two results": b'{"__type__":"result","__id__":"mine","value":1}\n' * 2,
    "a message of the host": b'{"__type__":"dispatch_result","__dispatch_id__":"d-1","payload":1}\n',
    "a second ready": b'{"__type__":"ready","version":1,"python":"3"}\n',
    "a cancel of an unknown dispatch": b'{"__type__":"cancel","__dispatch_id__":"d-99"}\n',
    "a reserved key": b'{"__type__":"result","__id__":"mine","__secrets__":1}\n',
    "invalid JSON": b"hello\n",
}


@pytest.mark.parametrize(
    ("violation", "anyio_backend"),
    [*((name, "asyncio") for name in VIOLATIONS), ("invalid JSON", "trio"), ("two results", "trio")],
)
async def test_protocol_violation_kills_the_worker_and_fails_its_calls(  # noqa: PLR0917  fixtures
    make_skill, make_pool, reports, answers, gather, violation
):
    skill = make_skill(RAW)
    async with make_pool() as pool:
        mine = skill.call("say", id="mine", arguments={"data": VIOLATIONS[violation]})
        neighbor = skill.call("wait", handler=answers.handler)
        found = await gather(pool.call(neighbor), pool.call(mine))
        assert isinstance(found[0], ProtocolViolation)
        if violation != "two results":
            assert isinstance(found[1], ProtocolViolation)
        assert (await pool.call(skill.call("pid"))).value
    assert [report.code for report in reports] == ["worker.protocol"]


async def test_capabilities_claimed_by_a_worker_are_ignored(make_skill, make_pool):
    skill = make_skill(
        RAW
        + """
    async def one():
        forge("mine", 1, caps=["secrets", "shell"], caps_in_params=["shell"])
        await asyncio.sleep(0)
    """
    )
    async with make_pool() as pool:
        await pool.call(skill.call("one", id="mine", capabilities=("http",)))
    ((call, op, params),) = skill.dispatched
    assert (call, op) == ("mine", "echo.forged")
    assert params == {"caps_in_params": ["shell"]}


@both_backends
async def test_progress_messages_of_concurrent_calls_are_kept_separate(make_skill, make_pool, reports, gather):
    skill = make_skill(
        RAW
        + """
    async def report(id):
        line(__type__="progress", __id__=id, current=1)
        await asyncio.sleep(0.05)
        return id
    """
    )
    progress, both = [], anyio.Event()

    async def handler(op, params):
        progress.append((op, params))
        if len(progress) == 2:
            both.set()
        await both.wait()

    async with make_pool() as pool:
        calls = [skill.call("report", id=one, arguments={"id": one}, handler=handler) for one in ("one", "two")]
        found = await gather(*map(pool.call, calls))
    assert [answer.value for answer in found] == ["one", "two"]
    assert progress == [("progress.report", {"current": 1})] * 2
    assert reports == []


async def test_dispatch_of_an_ended_call_is_refused_and_reported(make_skill, make_pool, reports):
    skill = make_skill(
        RAW
        + """
    kept = []

    async def first():
        from sideband.skill import current_call
        kept.append(current_call.get())

    async def second():
        from sideband.skill import current_call
        current_call.set(kept[0])
        try:
            await echo.late()
        except OpError as error:
            return error.code
    """
    )
    async with make_pool() as pool:
        await pool.call(skill.call("first", id="ended"))
        assert (await pool.call(skill.call("second"))).value == "call.finished"
    assert skill.dispatched == []
    assert [(report.code, report.call, report.op) for report in reports] == [("call.finished", "ended", "echo.late")]


async def test_call_of_another_worker_is_a_protocol_violation(make_skill, make_pool, answers, gather):
    skill, other = make_skill(RAW), make_skill(RAW, "other")
    data = json.dumps({**DISPATCH, "__id__": "victim"}).encode() + b"\n"
    async with make_pool() as pool:

        async def attack():
            await answers.arrived(1)
            outcome = await gather(pool.call(other.call("say", arguments={"data": data})))
            answers.release("wait")
            return outcome[0]

        victim, attacker = await gather(pool.call(skill.call("wait", id="victim", handler=answers.handler)), attack())
    assert victim.value == "answer wait"
    assert isinstance(attacker, ProtocolViolation)
    assert [call for call, *_ in skill.dispatched + other.dispatched] == ["victim"]


@both_backends
async def test_ops_in_flight_of_a_call_are_limited(make_skill, make_pool, answers, reports, until):
    skill = make_skill(
        RAW
        + """
    async def one():
        for number in range(1, 41):
            forge("mine", number, key=number)
        await asyncio.sleep(30)
    """
    )
    async with make_pool() as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(pool.call, skill.call("one", id="mine", handler=answers.handler))
        await answers.arrived(32)
        await until(lambda: len(reports) >= 8)
        tasks.cancel_scope.cancel()
    assert sorted(answers.waiting) == list(range(1, 33))
    assert {report.code for report in reports} == {"limit.in_flight"}


async def test_ops_of_a_call_are_limited(make_skill, make_pool, monkeypatch):
    monkeypatch.setattr(_pending, "MAX_DISPATCHES", 100)
    skill = make_skill("""
        async def many():
            for number in range(100):
                await dispatch("echo.get")
            try:
                await dispatch("echo.get")
            except OpError as error:
                return error.code
    """)
    async with make_pool() as pool:
        assert (await pool.call(skill.call("many"))).value == "limit.dispatches"
    assert len(skill.dispatched) == 100


@both_backends
async def test_reading_pauses_at_256_ops_in_flight(make_skill, make_pool, answers, gather):
    skill = make_skill("async def many(name):\n    await asyncio.gather(*(echo.get(key=[name, n]) for n in range(32)))")

    async def handler(op, params):
        return await answers.handler(op, {"key": tuple(params["key"])})

    async with make_pool() as pool:

        async def release():
            await answers.arrived(256)
            await anyio.wait_all_tasks_blocked()
            assert len(answers.waiting) == 256
            for key in list(answers.waiting):
                answers.release(key)
            await answers.arrived(288)
            for key in list(answers.waiting):
                answers.release(key)

        calls = (pool.call(skill.call("many", handler=handler, arguments={"name": n})) for n in range(9))
        *found, problem = await gather(*calls, release())
    assert problem is None
    assert [answer.value for answer in found] == [None] * 9


@both_backends
async def test_crash_is_detected_while_reading_is_paused(make_skill, make_pool, answers, gather, monkeypatch):
    monkeypatch.setattr(_worker, "_END_GRACE", 0.1)
    skill = make_skill("""
        async def many(name):
            await asyncio.gather(*(echo.get(key=[name, n]) for n in range(32)))

        async def die(name):
            await echo.get(key=[name, 0])
            os._exit(1)
    """)

    # It must be among the 256 dispatches that are served at the same time.
    dying = anyio.Event()

    async def handler(op, params):
        if params["key"][0] == "die":
            dying.set()
            await answers.arrived(255)
            return None
        return await answers.handler(op, {"key": tuple(params["key"])})

    async def fill(pool, name):
        await dying.wait()
        return await pool.call(skill.call("many", handler=handler, arguments={"name": name}))

    async with make_pool() as pool:
        with anyio.fail_after(15):
            die = pool.call(skill.call("die", handler=handler, arguments={"name": "die"}))
            found = await gather(die, *(fill(pool, name) for name in range(8)))
    assert all(isinstance(error, WorkerExited) for error in found)


async def test_endless_line_kills_the_worker(make_skill, make_pool):
    skill = make_skill("""
        async def flood():
            os.set_blocking(3, True)
            while True:
                os.write(3, b"x" * 65536)
    """)
    async with make_pool() as pool:
        with pytest.raises(ProtocolViolation, match="longer than 16,777,216 bytes"):
            await pool.call(skill.call("flood"))


@both_backends
async def test_worker_that_does_not_read_is_killed(make_skill, make_pool):
    skill = make_skill("""
        async def deaf():
            waiting = asyncio.create_task(echo.get())
            await asyncio.sleep(0)
            time.sleep(30)
    """)

    async def large(op, params):
        return "x" * (4 << 20)

    async with make_pool(write_timeout=0.3) as pool:
        with pytest.raises(WorkerExited, match=r"because it read nothing for 0.3 s"):
            await pool.call(skill.call("deaf", handler=large))


@both_backends
async def test_worker_that_does_not_read_refusals_is_killed(make_skill, make_pool):
    skill = make_skill(
        RAW
        + """
    async def deaf():
        os.set_blocking(3, True)
        for number in range(1, 10**6):
            forge("mine", number)
    """
    )

    async def never(op, params):
        await anyio.sleep_forever()

    async with make_pool(write_timeout=0.3) as pool:
        with pytest.raises(WorkerExited, match=r"because it read nothing for 0.3 s"):
            await pool.call(skill.call("deaf", id="mine", handler=never))


async def test_other_workers_are_served_while_one_floods_its_output(make_skill, make_pool, gather):
    skill, flood = (
        make_skill(RAW),
        make_skill(
            "async def flood():\n    while True:\n        os.write(1, b'x\\n' * 32768)\n        print('y' * 8000)",
            "flood",
        ),
    )
    async with make_pool(cancel_grace=0.1) as pool:
        await pool.call(skill.call("pid"))

        async def serve():
            slowest = 0.0
            for _ in range(50):
                start = time.perf_counter()
                await pool.call(skill.call("wait"))
                slowest = max(slowest, time.perf_counter() - start)
            return slowest

        slowest, _ = await gather(serve(), pool.call(flood.call("flood", timeout=1)))
    assert slowest < 1.0
    # The log is limited, and ends with the number of dropped lines.
    assert len(flood.logged) < 10_010
    assert flood.logged[-1][1].stream == "note"
    assert flood.logged[-1][1].text.endswith("more lines dropped")


@both_backends
async def test_large_answers_to_a_slow_reader_are_complete(make_skill, make_pool):
    """The worker is busy between reads, so each answer is written in several pieces."""
    skill = make_skill("""
        async def many():
            found = [asyncio.create_task(echo.get(n=n)) for n in range(8)]
            for _ in range(20):
                time.sleep(0.01)
                await asyncio.sleep(0)
            return [len(text) for text in await asyncio.gather(*found)]
    """)

    async def large(op, params):
        return "x" * (1_000_000 + params["n"])

    async with make_pool() as pool:
        answer = await pool.call(skill.call("many", handler=large))
    assert answer.value == [1_000_000 + n for n in range(8)]
