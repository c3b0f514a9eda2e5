"""Ops that the host does not answer: each fails in the skill after its own time."""

import anyio
import pytest
from sideband.workers import Isolation, PlainSandbox, launch

pytestmark = pytest.mark.anyio


class Impatient(PlainSandbox):
    """A sandbox whose workers wait at most 0.1 s for the answer to a dispatch."""

    def __init__(self, folder):
        super().__init__()
        self.wrapper = folder / "impatient"
        self.wrapper.write_text('#!/bin/sh\nexec "$@" --ceiling 0.1\n')
        self.wrapper.chmod(0o755)

    async def launch(self, request):
        return await launch(request, isolation=Isolation.NONE, wrapper=[str(self.wrapper)])


async def never(op, params):
    await anyio.sleep_forever()


async def test_each_unanswered_op_fails_after_its_own_time(make_skill, make_pool):
    skill = make_skill("""
        async def ask(after):
            await asyncio.sleep(after)
            began = time.monotonic()
            try:
                await echo.get(key="never")
            except OpError as error:
                return [error.code, time.monotonic() - began]
        async def ask_often():
            first = await asyncio.gather(ask(0), ask(0.05), asyncio.to_thread(asyncio.run, ask(0.05)))
            return [*first, await ask(0.2)]
    """)
    async with make_pool(sandbox=Impatient(skill.folder)) as pool:
        answers = (await pool.call(skill.call("ask_often", handler=never))).value
    assert [code for code, _ in answers] == ["op.unanswered"] * 4
    assert min(seconds for _, seconds in answers) >= 0.1


async def test_unanswered_op_fails_in_the_skill_and_the_worker_is_kept(make_skill, make_pool):
    skill = make_skill("""
        async def ask():
            try:
                await echo.get(key="never")
            except OpError as error:
                return [error.code, os.getpid()]
        async def pid():
            return os.getpid()
    """)
    async with make_pool(sandbox=Impatient(skill.folder)) as pool:
        code, pid = (await pool.call(skill.call("ask", handler=never))).value
        assert code == "op.unanswered"
        assert (await pool.call(skill.call("pid"))).value == pid
