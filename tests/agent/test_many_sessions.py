"""Many sessions at once in one host: they take turns, and none waits for another."""

from collections import Counter

import anyio
import pytest
from sideband import Plugin
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

TURNS = [*(Turn(tool_calls=[("note", {"text": str(number)})]) for number in range(4)), "done"]
SESSIONS = 100


async def test_sessions_that_run_at_once_take_turns(stage, kit):
    """Count the turns of all other sessions between two turns of one."""
    turns = []

    @tool("note")
    async def note(params: kit.Text, ctx) -> str:
        """Note whose turn it is."""
        turns.append(ctx.session)
        return "noted"

    scripted = Scripted(TURNS, by_history=True)
    async with stage((), Plugin("tool", "note", note), scripted=scripted) as agent, anyio.create_task_group() as tasks:

        async def run():
            async with Agent(agent.host) as own:
                assert (await own.invoke("go on")).text == "done"

        for _ in range(SESSIONS):
            tasks.start_soon(run)

    assert Counter(Counter(turns).values()) == {4: SESSIONS}
    last, longest = {}, 0
    for place, session in enumerate(turns):
        longest = max(longest, place - last.get(session, place))
        last[session] = place
    assert longest <= 2 * SESSIONS, "no session may have two turns while another one waits for its next"


async def test_sessions_do_not_wait_for_a_call_of_another(stage, kit):
    waiting, release = [], anyio.Event()

    @tool("note")
    async def note(params: kit.Text, ctx) -> str:
        """Wait in the first half of the sessions."""
        if len(waiting) < SESSIONS // 2:
            waiting.append(ctx.session)
            await release.wait()
        return "noted"

    scripted = Scripted(TURNS, by_history=True)
    ended = []
    async with stage((), Plugin("tool", "note", note), scripted=scripted) as agent, anyio.create_task_group() as tasks:

        async def run():
            async with Agent(agent.host) as own:
                assert (await own.invoke("go on")).text == "done"
                ended.append(own.session.id)

        for _ in range(SESSIONS):
            tasks.start_soon(run)
        with anyio.fail_after(60):
            while len(ended) < SESSIONS // 2:
                await anyio.wait_all_tasks_blocked()
        assert not set(ended) & set(waiting)
        release.set()
    assert len(ended) == SESSIONS
