"""How often a run waits for the disk. Ledger and store are synced together, so each sync of the ledger is one wait."""

from collections import Counter
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ledger import Ledger
from sideband.ops import Level, OpFamily, op
from sideband.tools import tool
from sideband_agent import Budget
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@tool("fetch", exclusive=True, read_only=True)
async def fetch(params: Nothing, ctx) -> str:
    """Read something."""
    return "read"


FETCH = Plugin("tool", "fetch", fetch)
TOO_MANY = "a hot path waits for the disk more often: see `Durability` in docs/architecture.md before you allow it"


@pytest.fixture(autouse=True)
def no_background_syncs(monkeypatch):
    monkeypatch.setitem(Ledger.__init__.__kwdefaults__, "head_interval", 1_000)


@pytest.fixture
def change(kit):
    @tool("change", level=Level.CONTROLLED)
    async def change(params: kit.Text, ctx) -> str:
        """Change something."""
        return "changed"

    return Plugin("tool", "change", change)


def turns(name, count):
    return [*(Turn(tool_calls=[(name, {})]) for _ in range(count)), "done"]


async def waits(stage, syncs, plugins, script):
    """Return how often a run waits, after a first run that creates the files."""
    async with stage(["ready", *script], *plugins) as agent:
        await agent.invoke("first")
        syncs.clear()
        result = await agent.invoke("second")
        assert result.text == "done"
        return max(Counter(syncs).values())  # of the ledger, unless the store is also synced alone


async def test_run_that_only_reads_waits_for_the_disk_once(stage, kit, syncs):
    assert await waits(stage, syncs, [kit.echo], turns("echo", 10)) == 1, TOO_MANY


async def test_result_that_is_shortened_for_the_model_does_not_wait_for_the_disk(stage, kit, syncs):
    @tool("read", read_only=True)
    async def read(params: kit.Text, ctx) -> str:
        """Read a long text."""
        return "word " * 50_000

    assert await waits(stage, syncs, [Plugin("tool", "read", read)], turns("read", 3)) == 1, TOO_MANY


async def test_call_that_only_reads_does_not_wait_for_the_disk_whatever_its_level(stage, kit, syncs):
    @tool("peek", level=Level.CONTROLLED, read_only=True)
    async def peek(params: kit.Text, ctx) -> str:
        """Read something that is sensitive."""
        return "read"

    assert await waits(stage, syncs, [Plugin("tool", "peek", peek)], turns("peek", 3)) == 1, TOO_MANY


async def test_turn_that_changes_something_waits_for_the_disk_twice(stage, change, syncs):
    assert await waits(stage, syncs, [change], turns("change", 3)) == 2 * 3 + 1, TOO_MANY


async def test_call_that_only_causes_effects_of_ops_does_not_wait_itself(stage, kit, syncs):
    @tool("relay", level=Level.CONTROLLED, resume="replay")
    async def relay(params: kit.Text, ctx) -> str:
        """Cause an effect through an op."""
        return await ctx.dispatch("bell.ring", {})

    @op("bell.ring", level=Level.CONTROLLED)
    async def ring(params: Nothing, ctx) -> str:
        """Ring."""
        return "ding"

    bell = SimpleNamespace(sideband_ops=lambda: OpFamily("bell", (ring,)))
    plugins = Plugin("tool", "relay", relay), Plugin("op", "bell", bell)
    assert await waits(stage, syncs, plugins, turns("relay", 3)) == 2 * 3 + 1, TOO_MANY


async def test_calls_of_one_turn_share_their_waits(stage, change, syncs):
    script = [Turn(tool_calls=[("change", {"text": str(number)}) for number in range(8)]), "done"]
    assert await waits(stage, syncs, [change], script) <= 2 + 2, TOO_MANY


async def test_model_sees_no_result_of_a_change_before_it_is_on_disk(stage, kit, change):
    """The second call syncs the outcome of the first one, before the results are in the session."""
    unsynced = []

    def answer(request):
        unsynced.append(agent.host.store.unsynced())
        return "done"

    script = [Turn(tool_calls=[("change", {}), ("fetch", {})]), answer]
    async with stage(script, change, FETCH) as agent:
        await agent.invoke("go")
    assert unsynced == [None]


async def test_model_sees_no_recorded_result_of_a_change_before_it_is_in_the_session_on_disk(stage, change):
    """The result of a call that ran before an interruption is stored when the run is resumed."""
    unsynced = []

    def answer(request):
        unsynced.append(agent.host.store.unsynced())
        return "done"

    script = [Turn(tool_calls=[("change", {}), ("fetch", {})]), answer]
    async with stage(script, change, FETCH, budget=Budget(calls=1)) as agent:
        assert (await agent.invoke("go")).status == "parked"
        agent.allowance.limit = Budget(calls=10)
        await agent.resume()
    assert unsynced == [None]


async def test_results_of_an_abandoned_run_are_on_disk_before_the_next_run_begins(stage, kit, change):
    unsynced = []

    def before_agent_start(event, ctx):
        unsynced.append(agent.host.store.unsynced())

    hook = Plugin("hook", "look", kit.hooks(before_agent_start=before_agent_start))
    script = [Turn(tool_calls=[("change", {}), ("fetch", {})]), "done"]
    async with stage(script, change, FETCH, hook, budget=Budget(calls=1)) as agent:
        assert (await agent.invoke("go")).status == "parked"
        await agent.invoke("never mind")
    assert unsynced[-1] is None
