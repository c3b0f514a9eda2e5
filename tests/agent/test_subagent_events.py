"""The events around child agents: a start and an end for each, however it ends."""

from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import SubagentEnd, SubagentStart
from sideband.providers import ProviderRefused
from sideband.tools import tool
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def seen(kit):
    """A plugin that collects the events of children, and these events."""
    events = []
    plugin = Plugin("hook", "watcher", kit.listening(events, "subagent_start", "subagent_end"))
    return SimpleNamespace(events=events, plugin=plugin)


def helper_of(kit, **options):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child(params.text, **options)).status

    return Plugin("tool", "helper", helper)


def delegating(text="add 1 and 1"):
    return Turn(tool_calls=[("helper", {"text": text})])


async def test_start_describes_the_task_and_the_end_its_outcome(stage, kit, seen):
    async with stage([delegating(), "2", "ok"], kit.echo, helper_of(kit, tools=["echo"]), seen.plugin) as agent:
        result = await agent.invoke("hi")
    start, end = seen.events
    assert isinstance(start, SubagentStart)
    assert (start.task, start.tools, start.run, start.resumed) == ("add 1 and 1", ("echo",), result.run, False)
    assert start.call == f"{result.session}:{result.run}:0.0"
    assert isinstance(end, SubagentEnd)
    assert (end.session, end.status, end.text, end.error) == (start.session, "completed", "2", None)
    assert end.usage["output"] > 0


async def test_child_that_fails_has_an_end_with_the_reason(stage, kit, seen):
    turns = [delegating(), ProviderRefused("scripted", "no such model", status=404), "ok"]
    async with stage(turns, helper_of(kit), seen.plugin) as agent:
        await agent.invoke("hi")
    _, end = seen.events
    assert (end.status, end.error["code"]) == ("failed", "provider.refused")


async def test_child_that_raises_has_an_end_with_the_error(stage, kit, seen):
    async with stage([delegating("  "), "ok"], helper_of(kit), seen.plugin) as agent:
        await agent.invoke("hi")
    _, end = seen.events
    assert (end.status, end.error["code"]) == ("failed", "agent.input")


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_child_that_is_cancelled_has_an_end(stage, kit, seen):
    async with stage([delegating(), Hang()], helper_of(kit), seen.plugin) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        while len(agent.scripted.requests) < 2:
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(10):
            agent.abort()
            await agent.wait_for_idle()
    assert [(one.hook, getattr(one, "status", "")) for one in seen.events] == [
        ("subagent_start", ""),
        ("subagent_end", "aborted"),
    ]


async def test_long_tasks_and_answers_are_cut(stage, kit, seen):
    async with stage([delegating("a" * 5_000), "b" * 5_000, "ok"], helper_of(kit), seen.plugin) as agent:
        await agent.invoke("hi")
    start, end = seen.events
    assert start.task == "a" * 1_999 + "…"
    assert end.text == "b" * 1_999 + "…"


async def test_secret_in_a_task_is_redacted(stage, kit, seen):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child("use correct-horse-battery")).status

    async with stage([delegating(), "2", "ok"], Plugin("tool", "helper", helper), seen.plugin) as agent:
        agent.host.context_for("agent").protect("correct-horse-battery", "horse")
        await agent.invoke("hi")
    assert "battery" not in seen.events[0].task


async def test_children_of_children_have_events_too(stage, kit, seen):
    turns = [delegating("outer"), delegating("inner"), "done", "done", "ok"]
    async with stage(turns, helper_of(kit), seen.plugin) as agent:
        await agent.invoke("hi")
    assert [getattr(one, "task", "end") for one in seen.events] == ["outer", "inner", "end", "end"]
    assert [one.session for one in seen.events[:2]] == [one.session for one in seen.events[:1:-1]]
