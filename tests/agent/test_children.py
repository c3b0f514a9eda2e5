"""Child agents: the parent's exact prompt and schemas, a subset of its tools, and cancellation with the parent."""

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import Section
from sideband.tools import tool
from sideband_agent import DepthReached, ToolsUnknown
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio


def helper_of(kit, **options):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        result = await ctx.spawn_child(params.text or "do it", **options)
        return f"{result.status}: {result.text}"

    return Plugin("tool", "helper", helper)


async def test_parent_gets_the_answer_of_its_child(stage, kit):
    turns = [Turn(tool_calls=[("helper", {"text": "add 1 and 1"})]), "2", "it is 2"]
    async with stage(turns, helper_of(kit)) as agent:
        result = await agent.invoke("hi")
        child = agent.scripted.requests[1]
        assert [message.text for message in child.messages] == ["add 1 and 1"]
        assert agent.session.messages()[2].text == "completed: 2"
    assert result.text == "it is 2"


async def test_child_has_the_exact_prompt_and_tools_of_its_parent(stage, kit):
    def sections(event):
        return [Section("base", f"Session {event.session}.")]

    turns = [Turn(tool_calls=[("helper", {})]), "done", "ok"]
    prompts = Plugin("hook", "prompts", kit.hooks(sections=sections))
    async with stage(turns, kit.echo, prompts, helper_of(kit, tools=["echo"])) as agent:
        await agent.invoke("hi")
        parent, child, _ = agent.scripted.requests
    assert (child.system, child.tools, child.model) == (parent.system, parent.tools, parent.model)


async def test_child_can_call_only_its_given_tools(stage, kit):
    turns = [
        Turn(tool_calls=[("helper", {})]),
        Turn(tool_calls=[("helper", {}), ("echo", {"text": "x"})]),
        "done",
        "ok",
    ]
    async with stage(turns, kit.echo, helper_of(kit, tools=["echo"])) as agent:
        await agent.invoke("hi")
        refused, allowed = agent.scripted.requests[2].messages[-2:]
    assert "may not be called here" in refused.text
    assert "echo" in refused.text
    assert allowed.text == "x"


async def test_refused_child_raises_the_same_error_in_a_tool_that_resumes(stage, kit):
    @tool("helper", resume="replay")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        with pytest.raises(ToolsUnknown):
            await ctx.spawn_child("do it", tools=["nothing"])
        return "refused"

    async with stage([Turn(tool_calls=[("helper", {})]), "ok"], Plugin("tool", "helper", helper)) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[2].text == "refused"


async def test_child_has_no_tools_beyond_its_parents(stage, kit):
    turns = [Turn(tool_calls=[("helper", {})]), Turn(tool_calls=[("echo", {"text": "x"})]), "done", "ok"]
    async with stage(turns, kit.echo, helper_of(kit, tools=["echo", "helper"]), tools=["helper"]) as agent:
        await agent.invoke("hi")
        assert agent.scripted.requests[2].messages[-1].is_error


async def test_depth_of_child_agents_is_limited(stage, kit):
    depths = []

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        depths.append(ctx.agent.depth)
        try:
            await ctx.spawn_child("deeper")
        except DepthReached as error:
            return error.message
        return "came back"

    turns = [*[Turn(tool_calls=[("helper", {})])] * 3, *["ok"] * 3]
    settings = {"agent": {"model": "scripted:test", "depth": 2}}
    async with stage(turns, Plugin("tool", "helper", helper), settings=settings) as agent:
        await agent.invoke("hi")
        deepest = agent.scripted.requests[3].messages[-1]
    assert depths == [0, 1, 2]
    assert "depth of 2" in deepest.text


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_child_is_cancelled_with_its_parent(stage, kit):
    turns = [Turn(tool_calls=[("helper", {})]), Hang()]
    async with stage(turns, helper_of(kit)) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        while len(agent.scripted.requests) < 2:
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(10):
            agent.abort()
            await agent.wait_for_idle()
        kit.assert_valid(agent.session.messages())


async def test_conversation_of_a_child_is_not_stored(stage, kit):
    turns = [Turn(tool_calls=[("helper", {})]), "done", "ok"]
    async with stage(turns, helper_of(kit)) as agent:
        await agent.invoke("hi")
        assert [one.id for one in await agent.sessions.list()] == [agent.session.id]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_children_run_concurrently(stage, kit):
    meeting = [anyio.Event(), anyio.Event()]

    @tool("meet")
    async def meet(params: kit.Text, ctx) -> str:
        """Wait for the other one."""
        mine = int(params.text)
        meeting[mine].set()
        await meeting[1 - mine].wait()
        return params.text

    def play(request):
        first = request.messages[0].text
        if first == "hi":
            calls = [("helper", {"text": "0"}), ("helper", {"text": "1"})]
            return "both" if len(request.messages) > 1 else Turn(tool_calls=calls)
        return "met" if len(request.messages) > 1 else Turn(tool_calls=[("meet", {"text": first})])

    with anyio.fail_after(20):
        async with stage([play] * 6, Plugin("tool", "meet", meet), helper_of(kit)) as agent:
            result = await agent.invoke("hi")
    assert result.text == "both"


async def test_child_cannot_get_a_tool_that_the_parent_lacks(stage, kit):
    turns = [Turn(tool_calls=[("helper", {})]), "ok"]
    async with stage(turns, kit.echo, helper_of(kit, tools=["echo", "shell"])) as agent:
        await agent.invoke("hi")
        assert "unknown tool for the child agent: `shell`" in agent.session.messages()[2].text
