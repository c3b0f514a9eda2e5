"""The pool: one worker a trust domain, how long it is kept, and who gives way to whom."""

import os

import anyio
import pytest

pytestmark = pytest.mark.anyio

TOOLS = """
    async def wait(key="wait"):
        return await echo.get(key=key)

    async def pid():
        return os.getpid()
"""


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_two_hundred_calls_at_once_start_one_worker(make_skill, make_pool, gather):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        found = await gather(*(pool.call(skill.call("pid")) for _ in range(200)))
    assert len({answer.value for answer in found}) == 1


async def test_an_idle_worker_is_retired(make_skill, make_pool, until):
    skill = make_skill(TOOLS)
    async with make_pool(idle_seconds=0.1) as pool:
        before = (await pool.call(skill.call("pid"))).value
        await until(lambda: not exists(before))
        assert (await pool.call(skill.call("pid"))).value != before


async def test_an_idle_worker_gives_way_when_there_are_too_many(make_skill, make_pool, gather, until):
    skill = make_skill(TOOLS)
    async with make_pool(maximum=2) as pool:
        found = await gather(*(pool.call(skill.call("pid", domain=f"domain {n}")) for n in range(6)))
        pids = [answer.value for answer in found]
        assert len(set(pids)) == 6
        await until(lambda: sum(map(exists, pids)) <= 2)


async def test_a_domain_waits_for_room_until_a_call_ends(make_skill, make_pool, gather, answers):
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


async def test_leaving_the_pool_ends_its_workers(make_skill, make_pool):
    skill = make_skill(TOOLS)
    async with make_pool() as pool:
        pids = [(await pool.call(skill.call("pid", domain=str(n)))).value for n in range(3)]
        assert all(map(exists, pids))
    assert not any(map(exists, pids))


async def test_an_error_in_the_body_of_a_pool_comes_out_as_it_is(make_pool):
    with pytest.raises(KeyError, match="mine"):
        async with make_pool():
            raise KeyError("mine")
