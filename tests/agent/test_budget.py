"""Budgets: a run that exceeds its budget is parked and can be resumed with a larger one."""

import anyio
import pytest
from sideband import Plugin
from sideband.providers import Prices
from sideband.tools import tool
from sideband_agent import Agent, Budget
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

DEAR = Prices(input=1_000_000, output=1_000_000)


@pytest.mark.parametrize(
    ("budget", "what"),
    [(Budget(money=1.0), "US dollars"), (Budget(tokens=1), "tokens")],
)
async def test_spent_budget_parks_the_run_before_the_next_step(stage, kit, budget, what):
    scripted = Scripted([Turn(tool_calls=[("echo", {"text": "x"})]), "never"], prices=DEAR)
    async with stage([], kit.echo, scripted=scripted, budget=budget) as agent:
        result = await agent.invoke("hi")
        assert len(scripted.requests) == 1
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.error["code"]) == ("parked", "budget.spent")
    assert what in result.error["message"]


async def test_working_time_is_charged_during_a_run(stage, kit):
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "never"]
    async with stage(turns, kit.echo, budget=Budget(seconds=1e-9)) as agent:
        result = await agent.invoke("hi")
    assert (result.status, "seconds" in result.error["message"]) == ("parked", True)


async def test_money_budget_parks_a_run_with_an_unpriced_model(stage, kit):
    scripted = Scripted([Turn(tool_calls=[("echo", {"text": "x"})]), "never"], prices=None)
    async with stage([], kit.echo, scripted=scripted, budget=Budget(money=1.0)) as agent:
        result = await agent.invoke("hi")
        assert len(scripted.requests) == 1
    assert (result.status, result.error["code"]) == ("parked", "budget.unpriced")


async def test_call_budget_stops_further_tools_until_resumed(stage, kit):
    ran = []

    @tool("count")
    async def count(params: kit.Text, ctx) -> str:
        """Count."""
        ran.append(params.text)
        return params.text

    turns = [Turn(tool_calls=[("count", {"text": "1"})]), Turn(tool_calls=[("count", {"text": "2"})]), "done"]
    plugin = Plugin("tool", "count", count)
    async with stage(turns, plugin, budget=Budget(calls=1)) as agent:
        first = await agent.invoke("hi")
        name = agent.session.id
        assert (first.status, ran) == ("parked", ["1"])
        await agent.new_session()
        async with Agent(agent.host, session=name, budget=Budget(calls=10)) as more:
            second = await more.resume()
            kit.assert_valid(more.session.messages())
    assert (second.status, second.text, ran) == ("completed", "done", ["1", "2"])


async def test_usage_is_restored_when_a_session_is_reopened(stage, kit):
    scripted = Scripted(["one", "two"], prices=DEAR)
    async with stage([], scripted=scripted, budget=Budget(money=1.0)) as agent:
        await agent.invoke("hi")
        used, name = agent.usage, agent.session.id
        await agent.new_session()
        assert agent.usage.cost is None
        await agent.switch_session(name)
        assert agent.usage == used
        assert (await agent.invoke("again")).status == "parked"


async def test_child_gets_a_share_and_its_usage_is_charged_to_its_parent(stage, kit):
    left = []

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        left.append(ctx.agent.allowance.left("tokens"))
        result = await ctx.spawn_child("do it", share=0.5)
        left.append(ctx.agent.allowance.left("tokens"))
        return result.status

    def hungry(request):
        return Turn(tool_calls=[("echo", {"text": "x" * 4_000})])

    turns = [Turn(tool_calls=[("helper", {})]), *[hungry] * 20, "ok"]
    plugins = [kit.echo, Plugin("tool", "helper", helper)]
    async with stage(turns, *plugins, budget=Budget(tokens=40_000)) as agent:
        await agent.invoke("hi")
        answer = next(message for message in agent.session.messages() if message.role == "tool")
        usage = agent.usage
    assert answer.text == "parked"
    before, after = left
    assert before * 0.3 < after < before * 0.6
    assert usage.context > 20_000


def test_shares_of_several_children_do_not_exceed_the_rest():
    from sideband_agent import Allowance

    allowance = Allowance(Budget(calls=100))
    with allowance.share(0.5) as first, allowance.share(0.5) as second:
        assert (first.limit.calls, second.limit.calls) == (50, 25)
        first.charge(calls=10)
        assert allowance.left("calls") == 100 - 10 - 75
    assert allowance.left("calls") == 90


@pytest.mark.parametrize("fraction", [0, -1, 1.1, float("nan")])
def test_invalid_share_is_rejected(fraction):
    from sideband_agent import Allowance

    with pytest.raises(ValueError, match="share"), Allowance().share(fraction):
        pass


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_usage_of_an_interrupted_child_is_stored_with_its_parent(stage, kit):
    begun = anyio.Event()

    @tool("wait")
    async def wait(params: kit.Text, ctx) -> str:
        """Wait forever."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    @tool("delegate")
    async def delegate(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child("wait")).text

    turns = [Turn(tool_calls=[("delegate", {})]), Turn(tool_calls=[("wait", {})])]
    async with stage(turns, Plugin("tool", "wait", wait), Plugin("tool", "delegate", delegate)) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await begun.wait()
            agent.abort()
        before, name = agent.usage, agent.session.id
        await agent.new_session()
        await agent.switch_session(name)
        assert agent.usage == before


async def test_working_time_excludes_time_between_runs(stage, kit):
    async with stage([Turn(tool_calls=[("echo", {})]), "one", "two"], kit.echo) as agent:
        began = anyio.current_time()
        await agent.invoke("hi")
        await anyio.sleep(0.05)
        await agent.invoke("again")
        assert 0 < agent.allowance.used.seconds <= anyio.current_time() - began - 0.05
