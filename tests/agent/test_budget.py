"""Budgets: a run that exceeds its budget is parked and can be resumed with a larger one."""

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import Retry
from sideband.messages import Usage
from sideband.providers import Prices, ProviderRefused
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


def test_time_of_a_child_is_charged_to_the_child_only():
    from sideband_agent import Allowance

    allowance = Allowance(Budget(calls=100, seconds=100))
    with allowance.share(0.5) as share:
        share.charge(calls=2, seconds=30)
    assert (share.used.calls, share.used.seconds) == (2, 30)
    assert (allowance.used.calls, allowance.used.seconds) == (2, 0)


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


def failing(**usage):
    return ProviderRefused("scripted", "overloaded", status=529, usage=Usage(**usage))


def retrying(kit):
    def model_error(event):
        return Retry(0)

    return Plugin("hook", "rules", kit.hooks(model_error=model_error))


async def test_usage_of_failed_calls_counts_in_the_run_and_in_the_session_for_good(stage, kit):
    turns = [failing(input=100, cost=0.5), failing(input=100, cost=0.25), Turn("hi", usage=Usage(input=1, cost=0.125))]
    async with stage(turns, retrying(kit)) as agent:
        result = await agent.invoke("hi")
        name = agent.session.id
        assert (result.status, result.usage.cost, agent.usage.cost) == ("completed", 0.875, 0.875)
        assert agent.allowance.used.money == 0.875
        await agent.new_session()
        await agent.switch_session(name)
        assert (agent.usage.input, agent.allowance.used.money) == (201, 0.875)


async def test_unknown_cost_remains_unknown_after_a_failed_call_without_usage(stage, kit):
    refused = ProviderRefused("scripted", "overloaded", status=529)
    scripted = Scripted([refused, Turn("hi", usage=Usage(input=1))], prices=None)
    async with stage([], retrying(kit), scripted=scripted) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.usage.input, result.usage.cost) == ("completed", 1, None)


@pytest.mark.parametrize("budget", [Budget(money=0.5), Budget(tokens=100)], ids=["money", "tokens"])
async def test_failed_call_that_spends_the_budget_is_not_retried(stage, kit, budget):
    async with stage([failing(input=100, cost=0.5), "never"], retrying(kit), budget=budget) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 1
    assert (result.status, result.error["code"]) == ("parked", "budget.spent")


async def test_failed_call_that_spends_the_budget_gets_no_fallback(stage):
    settings = {"agent": {"model": "scripted:test", "fallbacks": ["scripted:other"]}}
    turns = [failing(input=100, cost=0.5), "never"]
    async with stage(turns, settings=settings, budget=Budget(money=0.5)) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == 1
    assert result.error["code"] == "budget.spent"


async def test_failed_model_call_of_a_plugin_is_charged_to_the_session(stage, kit):
    @tool("ask")
    async def ask(params: kit.Text, ctx) -> str:
        """Ask the model."""
        params = {"model": "scripted:test", "messages": [{"role": "user", "content": "x"}]}
        try:
            await ctx.dispatch("llm.generate", params, capabilities=["llm"])
        except ProviderRefused as error:
            return error.code
        return "no error"

    free = Usage(input=1, cost=0)
    turns = [Turn(tool_calls=[("ask", {})], usage=free), failing(input=100, cost=0.5), Turn("done", usage=free)]
    async with stage(turns, Plugin("tool", "ask", ask)) as agent:
        result = await agent.invoke("hi")
        assert (result.text, agent.usage.cost) == ("done", 0.5)


async def test_call_that_exceeds_the_budget_is_answered_and_the_next_one_is_refused(stage):
    turns = [Turn("dear", usage=Usage(input=10, cost=0.0013)), "never"]
    async with stage(turns, budget=Budget(money=0.0001, tokens=100)) as agent:
        assert agent.allowance.overruns() == {}
        assert (await agent.invoke("hi")).text == "dear"
        assert agent.allowance.overruns() == {"money": (0.0001, 0.0013)}
        assert (await agent.invoke("again")).error["code"] == "budget.spent"
        assert len(agent.scripted.requests) == 1
