"""Tool calls that a program makes in the session of an agent: the same gates and records as those of a model."""

import anyio
import pytest
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, Deny
from sideband.ledger import query
from sideband.ops import OpDenied
from sideband.tools import Tool
from sideband_agent import AgentBusy, Budget, BudgetSpent, RunUnfinished
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

ANY = {"type": "object", "properties": {}}


def plain(name, run, **options):
    return Tool(name, "", ANY, dict, run, **options)


async def answer(calls, tool, **arguments):
    with anyio.fail_after(10):
        return await calls.start(tool, arguments).answer()


def deciding(kit, decision):
    return Plugin("guard", "gate", kit.guard(tool_call=lambda event: decision))


async def test_call_returns_the_result_with_its_effect(stage, kit):
    async with stage([], kit.echo) as agent, agent.tool_calls() as calls:
        result = await answer(calls, "echo", text="hi")
        assert (result.text, result.is_error) == ("hi", False)
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert (record.effect, record.status) == (result.metadata["effect"], "done")
        assert record.origin.session == agent.session.id


async def test_calls_and_results_are_stored_as_pairs(stage, kit):
    async with stage([], kit.echo) as agent:
        async with agent.tool_calls() as calls:
            started = [calls.start("echo", {"text": str(number)}) for number in range(5)]
            for one in started:
                await one.answer()
        kit.assert_valid(agent.session.messages())
        assert {one.text for one in agent.session.messages() if one.role == "tool"} == set("01234")
        assert agent.session.unfinished_run() is None


async def test_guard_denies_a_call(stage, kit):
    async with stage([], kit.echo, deciding(kit, Deny("not today"))) as agent, agent.tool_calls() as calls:
        result = await answer(calls, "echo", text="hi")
        assert result.is_error
        assert "not today" in result.text
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert record.status == "denied"


async def test_halted_run_takes_no_further_calls_and_the_next_one_does(stage, kit):
    decisions = [Deny("enough", halt=True), None]
    gate = Plugin("guard", "gate", kit.guard(tool_call=lambda event: decisions.pop(0)))
    async with stage([], kit.echo, gate) as agent:
        async with agent.tool_calls() as calls:
            await answer(calls, "echo")
            assert calls.ended
            assert "enough" in calls.halted
        async with agent.tool_calls() as calls:
            assert (await answer(calls, "echo", text="hi")).text == "hi"


@pytest.mark.parametrize(("verdict", "text"), [("allow", "hi"), ("deny", "not approved")])
async def test_approver_is_asked(stage, kit, verdict, text):
    asked = []

    async def approver(request):
        asked.append(request)
        return Approval(verdict)

    gate = deciding(kit, Ask("May it?"))
    async with stage([], kit.echo, gate, approver=approver) as agent, agent.tool_calls() as calls:
        call = calls.start("echo", {"text": "hi"})
        assert text in (await call.answer()).text
        assert (asked[0].question, asked[0].origin.step) == ("May it?", call.step)


async def test_refused_call_can_be_approved_and_made_again(stage, kit):
    async with stage([], kit.echo, deciding(kit, Ask("May it?"))) as agent, agent.tool_calls() as calls:
        refused = await answer(calls, "echo", text="hi")
        assert refused.is_error
        (waiting,) = await agent.host.approvals.list()
        assert waiting.request.id in refused.metadata["hint"]
        await agent.host.approvals.answer(waiting.request.id, Approval("allow"))
        assert (await answer(calls, "echo", text="hi")).text == "hi"
        assert (await answer(calls, "echo", text="hi")).is_error


async def test_unknown_tool_is_an_error(stage, kit):
    async with stage([], kit.echo) as agent, agent.tool_calls() as calls:
        assert "unknown tool `ecko`" in (await answer(calls, "ecko")).text


async def test_tool_that_the_agent_may_not_call_is_refused(stage, kit):
    async with stage([], kit.echo, tools=["other"]) as agent, agent.tool_calls() as calls:
        assert (await answer(calls, "echo")).is_error


async def test_budget_is_charged(stage, kit):
    async with stage([], kit.echo, budget=Budget(calls=1)) as agent, agent.tool_calls() as calls:
        await answer(calls, "echo")
        with pytest.raises(BudgetSpent):
            await answer(calls, "echo")


class Door:
    """Tools that wait until the test opens the door, and tell when they began."""

    def __init__(self):
        self.began, self.open, self.log = anyio.Event(), anyio.Event(), []

    async def wait(self, arguments, ctx):
        self.log.append("+")
        self.began.set()
        await self.open.wait()
        self.log.append("-")
        return "done"

    async def enter(self, arguments, ctx):
        self.log.append("entered")
        self.open.set()
        return "in"


async def test_calls_run_at_the_same_time(stage):
    door = Door()
    tools = [plain("wait", door.wait), plain("enter", door.enter)]
    async with stage([], own_tools=tools) as agent, agent.tool_calls() as calls:
        waiting = calls.start("wait", {})
        await door.began.wait()
        assert (await answer(calls, "enter")).text == "in"
        assert (await waiting.answer()).text == "done"


@pytest.mark.parametrize("options", [{"exclusive": True}, {"parallel_group": "other"}], ids=str)
async def test_call_waits_for_those_that_it_may_not_run_with(stage, options):
    door = Door()
    tools = [plain("wait", door.wait), plain("alone", door.enter, **options)]
    async with stage([], own_tools=tools) as agent, agent.tool_calls() as calls:
        waiting = calls.start("wait", {})
        await door.began.wait()
        alone = calls.start("alone", {})
        door.open.set()
        assert ((await waiting.answer()).text, (await alone.answer()).text) == ("done", "in")
        assert door.log == ["+", "-", "entered"]


async def test_no_call_passes_one_that_waits(stage):
    door = Door()

    async def late(arguments, ctx):
        door.log.append("late")
        return "late"

    tools = [plain("wait", door.wait), plain("alone", door.enter, exclusive=True), plain("late", late)]
    async with stage([], own_tools=tools) as agent, agent.tool_calls() as calls:
        waiting = calls.start("wait", {})
        await door.began.wait()
        alone, last = calls.start("alone", {}), calls.start("late", {})
        await anyio.wait_all_tasks_blocked()
        door.open.set()
        for one in (waiting, alone, last):
            await one.answer()
        assert door.log == ["+", "-", "entered", "late"]


async def test_tool_goes_on_after_an_effect_that_needs_an_approval(stage, kit):
    async def ask(arguments, ctx):
        try:
            await ctx.dispatch(
                "llm.generate", {"model": "scripted:test", "messages": [{"role": "user", "content": "hi"}]}
            )
        except OpDenied as error:
            return f"went on: {error.code}"

    def op_call(event):
        return Ask("May it?") if event.op == "llm.generate" else None

    gate = Plugin("guard", "gate", kit.guard(op_call=op_call))
    async with stage([], gate, own_tools=[plain("ask", ask, resume="replay")]) as agent, agent.tool_calls() as calls:
        assert (await answer(calls, "ask")).text == "went on: approval.needed"


async def test_calls_are_not_added_between_a_tool_call_and_its_result(stage, kit):
    turns = [Turn(tool_calls=[("echo", {"text": "x"})])]
    async with stage(turns, kit.echo, deciding(kit, Ask("May it?"))) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        with pytest.raises(RunUnfinished):
            async with agent.tool_calls():
                pass


async def test_cancelled_call_is_recorded_and_others_go_on(stage, kit):
    door = Door()
    async with stage([], kit.echo, own_tools=[plain("wait", door.wait)]) as agent, agent.tool_calls() as calls:
        call = calls.start("wait", {})
        await door.began.wait()
        assert call.cancel("the client left")
        result = await call.answer()
        assert "cancelled while it was running (the client left)" in result.text
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert record.status == "cancelled"
        assert not (await answer(calls, "echo")).is_error


async def test_cancelled_call_that_waits_for_its_turn_lets_the_next_one_pass(stage, kit):
    door = Door()
    tools = [plain("wait", door.wait), plain("alone", door.enter, exclusive=True)]
    async with stage([], kit.echo, own_tools=tools) as agent, agent.tool_calls() as calls:
        waiting = calls.start("wait", {})
        await door.began.wait()
        alone = calls.start("alone", {})
        await anyio.lowlevel.checkpoint()
        alone.cancel("changed its mind")
        echo = calls.start("echo", {"text": "hi"})
        door.open.set()
        assert (await echo.answer()).text == "hi"
        assert "was not run" in (await alone.answer()).text
        assert (await waiting.answer()).text == "done"


async def test_cancelled_call_that_waits_for_an_approval_is_recorded(stage, kit):
    asked = anyio.Event()

    async def approver(request):
        asked.set()
        await anyio.sleep_forever()

    gate = deciding(kit, Ask("May it?"))
    async with stage([], kit.echo, gate, approver=approver) as agent, agent.tool_calls() as calls:
        call = calls.start("echo", {"text": "hi"})
        await asked.wait()
        call.cancel("the client left")
        with anyio.fail_after(10):
            assert (await call.answer()).metadata["code"] == "op.cancelled"
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert record.status == "cancelled"


async def test_end_of_the_block_cancels_calls(stage):
    door = Door()
    async with stage([], own_tools=[plain("wait", door.wait)]) as agent:
        async with agent.tool_calls() as calls:
            call = calls.start("wait", {})
            await door.began.wait()
        assert "cancelled" in (await call.answer()).text
        (stored,) = [one for one in agent.session.messages() if one.role == "tool"]
        assert stored.metadata["unknown"] is True


async def test_abort_cancels_the_block(stage):
    async with stage([]) as agent:
        with anyio.fail_after(10):
            async with agent.tool_calls() as calls:
                agent.abort("stop")
                await anyio.sleep_forever()
        assert calls.ended
        assert agent.is_idle


async def test_exception_of_the_block_is_raised_as_it_is(stage):
    async with stage([]) as agent:
        with pytest.raises(LookupError):
            async with agent.tool_calls():
                raise LookupError
        assert agent.is_idle


async def test_no_run_begins_meanwhile(stage):
    async with stage(["no"]) as agent, agent.tool_calls():
        with pytest.raises(AgentBusy):
            await agent.invoke("hi")


async def test_conversation_with_calls_continues_with_a_model(stage, kit):
    async with stage(["fine"], kit.echo) as agent:
        async with agent.tool_calls() as calls:
            await answer(calls, "echo", text="seen")
        assert (await agent.invoke("go on")).text == "fine"
        assert any("seen" in one.text for one in agent.scripted.requests[-1].messages if one.role == "tool")
