"""Calls of one turn: at most so many at once, in groups, answered as they finish, and cancelled one by one."""

import anyio
import pytest
from sideband import Plugin
from sideband.tools import Tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

PROPERTIES = {"type": "object", "properties": {"parallel_group": {"type": "string"}}}


class Crew:
    """Tools that record who works at the same time. Each worker waits for as many others as it meets."""

    def __init__(self):
        self.working, self.most, self.log, self.doors = 0, 0, [], {}

    def door(self, name):
        return self.doors.setdefault(name, anyio.Event())

    def tool(self, name, *, waits=None, opens=None, meets=1, schema=None, **options):
        async def run(arguments, ctx):
            self.working += 1
            self.most = max(self.most, self.working)
            self.log.append(f"+{name}")
            try:
                if self.working >= meets:
                    self.door(f"meet {meets}").set()
                if meets > 1:
                    await self.door(f"meet {meets}").wait()
                if waits:
                    await self.door(waits).wait()
                await anyio.lowlevel.checkpoint()
                self.log.append(f"-{name}")
                if opens:
                    self.door(opens).set()
            finally:
                self.working -= 1
            return name

        return Tool(name, "", schema or {"type": "object", "properties": {}}, dict, run, **options)


def listener(kit, seen):
    def tool_execution_end(event):
        seen.append(event.tool)

    return Plugin("hook", "listener", kit.hooks(tool_execution_end=tool_execution_end))


def results(agent):
    return [one for one in agent.session.messages() if one.role == "tool"]


async def test_calls_above_the_limit_wait(stage):
    crew = Crew()
    turns = [Turn(tool_calls=[("work", {})] * 25), "ok"]
    async with stage(turns, own_tools=[crew.tool("work", meets=10)]) as agent:
        await agent.invoke("hi")
    assert crew.most == 10
    assert crew.log.count("-work") == 25


async def test_each_result_is_emitted_when_its_call_ends_and_stored_in_the_order_of_the_calls(stage, kit):
    crew, seen = Crew(), []
    own = [crew.tool("slow", waits="quick is done"), crew.tool("quick", opens="quick is done")]
    turns = [Turn(tool_calls=[("slow", {}), ("quick", {})]), "ok"]
    async with stage(turns, listener(kit, seen), own_tools=own) as agent:
        await agent.invoke("hi")
        assert [one.text for one in results(agent)] == ["slow", "quick"]
    assert seen == ["quick", "slow"]


async def test_groups_of_tools_run_one_after_the_other(stage):
    crew = Crew()
    own = [crew.tool("a", parallel_group="x"), crew.tool("b", parallel_group="y"), crew.tool("c", parallel_group="x")]
    turns = [Turn(tool_calls=[("a", {}), ("b", {}), ("c", {})]), "ok"]
    async with stage(turns, own_tools=own) as agent:
        await agent.invoke("hi")
        assert [one.text for one in results(agent)] == ["a", "b", "c"]
    assert crew.log.index("-a") < crew.log.index("+b") > crew.log.index("-c")


async def test_calls_of_one_group_run_at_the_same_time(stage):
    crew = Crew()
    own = [crew.tool(one, parallel_group="x", meets=2) for one in "ab"]
    async with stage([Turn(tool_calls=[("a", {}), ("b", {})]), "ok"], own_tools=own) as agent:
        with anyio.fail_after(10):
            await agent.invoke("hi")
    assert crew.most == 2


async def test_model_chooses_the_group_of_a_call_if_the_tool_has_the_parameter(stage):
    crew = Crew()
    own = [crew.tool(one, schema=PROPERTIES) for one in "abc"]
    calls = [(name, {"parallel_group": group}) for name, group in zip("abc", ["1", "2", "1"], strict=True)]
    async with stage([Turn(tool_calls=calls), "ok"], own_tools=own) as agent:
        await agent.invoke("hi")
    assert crew.log.index("-a") < crew.log.index("+b") > crew.log.index("-c")


async def test_argument_of_a_tool_without_the_parameter_chooses_no_group(stage):
    crew = Crew()
    own = [crew.tool(one, meets=2) for one in "ab"]
    calls = [("a", {"parallel_group": "1"}), ("b", {"parallel_group": "2"})]
    async with stage([Turn(tool_calls=calls), "ok"], own_tools=own) as agent:
        with anyio.fail_after(10):
            await agent.invoke("hi")
    assert crew.most == 2


async def test_no_call_passes_an_exclusive_one(stage):
    crew = Crew()
    own = [crew.tool("a", parallel_group="x"), crew.tool("alone", exclusive=True), crew.tool("b", parallel_group="x")]
    async with stage([Turn(tool_calls=[("a", {}), ("alone", {}), ("b", {})]), "ok"], own_tools=own) as agent:
        await agent.invoke("hi")
    assert crew.log == ["+a", "-a", "+alone", "-alone", "+b", "-b"]


async def test_cancelled_call_is_answered_and_the_others_finish(stage, kit):
    crew = Crew()
    cancelled = []

    async def cancel(arguments, ctx):
        while len(crew.log) < 2:
            await anyio.lowlevel.checkpoint()
        stuck = next(one.id for one in agent.session.messages()[-1].tool_calls if one.name == "stuck")
        cancelled.append(agent.cancel_call(stuck, "too slow"))
        cancelled.append(agent.cancel_call(stuck))
        crew.door("cancelled").set()
        return "cancelled it"

    own = [crew.tool("stuck", waits="never"), crew.tool("other", waits="cancelled")]
    own.append(Tool("cancel", "", {"type": "object"}, dict, cancel))
    turns = [Turn(tool_calls=[("stuck", {}), ("other", {}), ("cancel", {})]), "ok"]
    async with stage(turns, own_tools=own) as agent:
        with anyio.fail_after(10):
            ran = await agent.invoke("hi")
        stuck, other, last = results(agent)
    assert (ran.status, cancelled) == ("completed", [True, False])
    assert "cancelled while it was running (too slow). It may have been executed in part" in stuck.text
    assert (stuck.metadata["code"], stuck.metadata["error_class"]) == ("tool.cancelled", "PRECONDITION_FAILED")
    assert [one.text for one in (other, last)] == ["other", "cancelled it"]
    assert not other.is_error


async def test_cancelled_call_that_has_not_begun_is_not_run(stage):
    crew = Crew()

    async def cancel(arguments, ctx):
        later = agent.session.messages()[-1].tool_calls[1].id
        return agent.cancel_call(later)

    own = [Tool("cancel", "", {"type": "object"}, dict, cancel, exclusive=True), crew.tool("later")]
    async with stage([Turn(tool_calls=[("cancel", {}), ("later", {})]), "ok"], own_tools=own) as agent:
        await agent.invoke("hi")
        later = results(agent)[1]
    assert later.text == "This call was cancelled. It was not run."
    assert crew.log == []


async def test_call_that_has_a_result_cannot_be_cancelled(stage):
    async def cancel(arguments, ctx):
        return agent.cancel_call(agent.session.messages()[-1].tool_calls[0].id)

    crew = Crew()
    own = [crew.tool("early", exclusive=True), Tool("cancel", "", {"type": "object"}, dict, cancel)]
    async with stage([Turn(tool_calls=[("early", {}), ("cancel", {})]), "ok"], own_tools=own) as agent:
        await agent.invoke("hi")
        assert [one.text for one in results(agent)] == ["early", "false"]
        assert agent.cancel_call("unknown") is False


async def test_cancelled_effects_of_a_call_are_recorded_as_cancelled(stage, kit):
    async def cancel(arguments, ctx):
        stuck = agent.session.messages()[-1].tool_calls[0].id
        await crew.door("begun").wait()
        return agent.cancel_call(stuck)

    async def stick(arguments, ctx):
        crew.door("begun").set()
        await anyio.sleep_forever()

    crew = Crew()
    own = [Tool(name, "", {"type": "object"}, dict, run) for name, run in (("stick", stick), ("cancel", cancel))]
    seen = []

    def effect(event):
        seen.append((event.params.get("tool"), event.status))

    plugin = Plugin("hook", "effects", kit.hooks(effect=effect))
    async with stage([Turn(tool_calls=[("stick", {}), ("cancel", {})]), "ok"], plugin, own_tools=own) as agent:
        await agent.invoke("hi")
    assert ("stick", "cancelled") in seen
