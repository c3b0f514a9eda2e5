"""Child agents have at most the rights, the lifetime and the budget of their parent."""

import asyncio
import math

import anyio
import pytest
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, Deny, hookimpl
from sideband.tools import tool
from sideband_agent import Budget
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio


def call(*named):
    return Turn(tool_calls=list(named))


@pytest.fixture
def spawning(kit):
    """Return a function that creates a tool, which spawns a child with the given options."""

    def make(**how):
        @tool("helper")
        async def helper(params: kit.Text, ctx) -> str:
            """Spawn a child."""
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


@pytest.mark.parametrize("patterns", [["*"], ["d*"], ["helper", "*"], ["danger*", "helper"]])
async def test_pattern_gives_a_child_no_tool_that_its_parent_lacks(stage, kit, spawning, danger, patterns):
    plugin, ran = danger
    turns = [call(("helper", {})), call(("danger", {})), "child", "ok"]
    async with stage(turns, plugin, spawning(tools=patterns), tools=["helper"]) as agent:
        result = await agent.invoke("hi")
        offered = [one.name for request in agent.scripted.requests for one in request.tools]
    assert result.status == "completed"
    assert (ran, "danger" in offered) == ([], False)


async def test_grandchild_has_at_most_the_tools_of_its_parent(stage, kit, danger):
    plugin, ran = danger

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Spawn a child, with fewer tools on the first level."""
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
async def test_invalid_share_spawns_no_child(stage, kit, spawning, results, share):
    turns = [call(("helper", {})), "ok", "never"]
    async with stage(turns, spawning(share=share), budget=Budget(tokens=100_000)) as agent:
        result = await agent.invoke("hi")
        (answered,) = results(agent)
        left = agent.allowance.left("tokens")
    assert (result.status, answered.is_error) == ("completed", True)
    assert 0 < left <= 100_000


async def test_usage_of_an_aborted_child_counts_for_its_parent(stage, kit, spawning):
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


async def test_question_about_a_call_of_a_child_goes_to_the_approver(stage, kit, spawning, danger):
    plugin, ran = danger
    asked = []

    class Careful:
        @hookimpl
        def tool_call(self, event):
            return Ask("Really?") if event.tool == "danger" else None

    async def approve(request):
        asked.append((request.question, request.subject))
        return Approval("deny")

    turns = [call(("helper", {})), call(("danger", {})), "child", "ok"]
    plugins = [plugin, spawning(), Plugin("guard", "careful", Careful)]
    async with stage(turns, *plugins, approver=approve) as agent:
        await agent.invoke("hi")
    assert (asked, ran) == ([("Really?", "danger")], [])


async def test_guard_of_an_agent_applies_to_descendants(stage, kit, spawning, danger):
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
async def test_child_left_running_by_a_tool_ends_with_the_call(stage, kit):
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
async def test_effect_left_running_by_a_tool_ends_with_the_call(stage, kit):
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
