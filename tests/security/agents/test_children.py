"""Children: however one is asked for, it may do no more than its parent, for no longer, and not beyond its budget."""

import asyncio
import math

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import Ask, Deny, hookimpl
from sideband.tools import tool
from sideband_agent import Budget
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio


def call(*named):
    return Turn(tool_calls=list(named))


@pytest.fixture
def spawning(kit):
    """A tool that spawns a child, as it is told."""

    def make(**how):
        @tool("helper")
        async def helper(params: kit.Text, ctx) -> str:
            """Let a child do it."""
            return (await ctx.spawn_child("do it", **how)).text

        return Plugin("tool", "helper", helper)

    return make


@pytest.fixture
def danger(kit):
    ran = []

    @tool("danger")
    async def danger(params: kit.Text, ctx) -> str:
        """Do harm."""
        ran.append(1)
        return "harm done"

    return Plugin("tool", "danger", danger), ran


@pytest.mark.parametrize("wish", [["*"], ["d*"], ["helper", "*"], ["danger*", "helper"]])
async def test_no_alias_gives_a_child_what_its_parent_lacks(stage, kit, spawning, danger, wish):
    plugin, ran = danger
    turns = [call(("helper", {})), call(("danger", {})), "child", "ok"]
    async with stage(turns, plugin, spawning(tools=wish), tools=["helper"]) as agent:
        result = await agent.invoke("hi")
        offered = [one.name for request in agent.scripted.requests for one in request.tools]
    assert result.status == "completed"
    assert (ran, "danger" in offered) == ([], False)


async def test_a_grandchild_has_at_most_the_tools_of_the_child(stage, kit, danger):
    plugin, ran = danger

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Let a child do it, with fewer tools each time."""
        tools = ["helper"] if params.text == "first" else None
        return (await ctx.spawn_child("do it", tools=tools)).text

    turns = [
        call(("helper", {"text": "first"})),
        call(("helper", {"text": "second"})),
        call(("danger", {})),
        "grandchild",
        "child",
        "ok",
    ]
    async with stage(turns, plugin, Plugin("tool", "helper", helper)) as agent:
        assert (await agent.invoke("hi")).status == "completed"
        refusal = agent.scripted.requests[3].messages[-1]
    assert ran == []
    assert "may not be called here" in refusal.text


@pytest.mark.parametrize("share", [math.nan, math.inf, -1, 0, 1.5, -math.inf])
async def test_a_share_that_is_none_spawns_no_child(stage, kit, spawning, results, share):
    turns = [call(("helper", {})), "ok", "never"]
    async with stage(turns, spawning(share=share), budget=Budget(tokens=100_000)) as agent:
        result = await agent.invoke("hi")
        (answered,) = results(agent)
        left = agent.allowance.left("tokens")
    assert (result.status, answered.is_error) == ("completed", True)
    assert 0 < left <= 100_000


async def test_what_a_child_uses_is_its_parents_also_when_it_is_stopped(stage, kit, spawning):
    hang = Hang(after=1)
    turns = [call(("helper", {})), call(("echo", {"text": "x" * 400})), hang]
    async with stage(turns, kit.echo, spawning(), budget=Budget(tokens=100_000)) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await hang.reached.wait()
            agent.abort()
        used = agent.usage.context
        kit.assert_valid(agent.session.messages())
        assert agent.allowance.left("tokens") <= 100_000 - used
    assert used > 100


async def test_a_question_about_a_childs_call_goes_to_the_same_person(stage, kit, spawning, danger):
    plugin, ran = danger
    asked = []

    class Careful:
        @hookimpl
        def tool_call(self, event):
            return Ask("Really?") if event.tool == "danger" else None

    async def approve(question, event):
        asked.append((question, event.tool))
        return False

    turns = [call(("helper", {})), call(("danger", {})), "child", "ok"]
    plugins = [plugin, spawning(), Plugin("guard", "careful", Careful)]
    async with stage(turns, *plugins, approver=approve) as agent:
        await agent.invoke("hi")
    assert (asked, ran) == ([("Really?", "danger")], [])


async def test_a_guard_of_the_agent_itself_holds_three_deep(stage, kit, spawning, danger):
    plugin, ran = danger

    class Strict:
        @hookimpl
        def tool_call(self, event):
            return Deny("never") if event.tool == "danger" else None

    turns = [*[call(("helper", {}))] * 3, call(("danger", {})), "a", "b", "c", "ok"]
    async with stage(turns, plugin, spawning(), guards={"strict": Strict}) as agent:
        assert (await agent.invoke("hi")).status == "completed"
        assert "never" in agent.scripted.requests[4].messages[-1].text
    assert ran == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_child_that_a_tool_leaves_running_ends_with_the_call(stage, kit):
    hang, left = Hang(), []

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Leave a child running."""
        left.append(asyncio.get_running_loop().create_task(ctx.spawn_child("do it")))
        await hang.reached.wait()
        return "left it"

    async with stage([call(("helper", {})), hang, "ok"], Plugin("tool", "helper", helper)) as agent:
        result = await agent.invoke("hi")
        with anyio.fail_after(5), pytest.raises(RuntimeError, match="has ended"):
            await left[0]
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.text) == ("completed", "ok")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_effect_that_a_tool_leaves_running_ends_with_the_call(stage, kit):
    hang, left = Hang(), []
    asking = {"model": "scripted:test", "messages": [{"role": "user", "content": "x"}]}

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Leave an effect running."""
        left.append(asyncio.get_running_loop().create_task(ctx.dispatch("llm.generate", asking)))
        await hang.reached.wait()
        return "left it"

    async with stage([call(("helper", {})), hang, "ok"], Plugin("tool", "helper", helper)) as agent:
        await agent.invoke("hi")
        with anyio.fail_after(5), pytest.raises(RuntimeError, match="has ended"):
            await left[0]
