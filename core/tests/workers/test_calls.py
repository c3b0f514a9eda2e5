"""A call, from its arguments to its result."""

import anyio
import pytest

from sideband.ops import OpDenied
from sideband.workers import ArgumentsInvalid, Isolation, SkillFailed, SkillRefused

pytestmark = pytest.mark.anyio

ECHO = """
@tool
async def back(value):
    return value
"""


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1.5,
        "text ☃ \u2028",
        [],
        [1, [2]],
        {},
        {"value": 1},
        {"a": 1, "value": 2},
        {"b": {"value": {}}},
        b"\x00\xff",
        {"nested": [b"", {"deep": b"bytes"}]},
    ],
)
async def test_a_value_comes_back_as_it_was_sent(make_skill, make_pool, value, anyio_backend):
    skill = make_skill(ECHO)
    async with make_pool() as pool:
        answer = await pool.call(skill.call("back", arguments={"value": value}))
    assert answer.value == value
    assert answer.isolation is Isolation.NONE


async def test_three_ops_of_one_call_are_in_flight_at_once_and_each_gets_its_own_answer(make_skill, make_pool, answers):
    skill = make_skill("""
        async def three():
            return await asyncio.gather(*(echo.get(key=key) for key in "abc"))
    """)
    async with make_pool() as pool, anyio.create_task_group() as tasks:

        async def answer_backwards():
            await answers.arrived(3)
            for key in "cab":
                answers.release(key)

        tasks.start_soon(answer_backwards)
        answer = await pool.call(skill.call("three", handler=answers.handler))
    assert answer.value == ["answer a", "answer b", "answer c"]
