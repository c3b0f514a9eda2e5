"""Undoing a tool call undoes all of its effects, newest first."""

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ledger import query
from sideband.ops import Level, OpContext, OpFamily, Undo, UndoStep, op
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Value(BaseModel):
    value: int = 0


class Lamp:
    """An op family for a lamp that records its history."""

    def __init__(self):
        self.history = []
        history = self.history

        async def undo(recorded, ctx):
            return Undo(steps=(UndoStep("lamp.unset", {"value": recorded.note["value"]}, "unset it"),))

        @op("lamp.set", level=Level.CONTROLLED, undo=undo)
        async def set_lamp(params: Value, ctx: OpContext) -> None:
            await ctx.note({"value": params.value})
            history.append(params.value)

        @op("lamp.unset", level=Level.CONTROLLED)
        async def unset(params: Value, ctx: OpContext) -> None:
            history.append(-params.value)

        self._family = OpFamily("lamp", (set_lamp, unset))

    def sideband_ops(self):
        return self._family


@tool("blink")
async def blink(params: Value, ctx) -> str:
    """Set the lamp twice."""
    for value in (1, 2):
        await ctx.dispatch("lamp.set", {"value": value})
    return "done"


async def test_effects_of_a_tool_call_are_undone_newest_first(stage):
    lamp = Lamp()
    plugins = [Plugin("op", "lamp", lamp), Plugin("tool", "blink", blink)]
    turns = [Turn(tool_calls=[("blink", {}), ("blink", {})]), "ok"]
    async with stage(turns, *plugins) as agent:
        await agent.invoke("blink")
        assert sorted(lamp.history) == [1, 1, 2, 2]
        first = (await query(agent.host.ledger.folder, op="tool.call", session=agent.session.id))[-1]
        plan = await agent.host.plan_undo(first.effect)
        assert [step.params for step in plan.steps] == [{"value": 2}, {"value": 1}]
        del lamp.history[:]
        await agent.host.undo(plan)
    assert lamp.history == [-2, -1]


@tool("delegate")
async def delegate(params: Value, ctx) -> str:
    """Let a child set the lamp; the child lets another one do it too, as often as `value` says."""
    again = "delegate" if params.value else "blink"
    return (await ctx.spawn_child(f"{again} {params.value}")).text


async def test_changes_of_a_session_include_those_of_its_children_and_no_others(stage):
    lamp = Lamp()
    plugins = [Plugin("op", "lamp", lamp), Plugin("tool", "blink", blink), Plugin("tool", "delegate", delegate)]
    turns = [
        Turn(tool_calls=[("delegate", {"value": 1})]),
        Turn(tool_calls=[("delegate", {})]),
        Turn(tool_calls=[("blink", {})]),
        "by the second",
        "by the first",
        Turn(tool_calls=[("blink", {})]),
        "ok",
        Turn(tool_calls=[("blink", {})]),
        "ok",
        Turn(tool_calls=[("blink", {})]),
        "ok",
    ]
    async with stage(turns, *plugins) as agent:
        host, session, first = agent.host, agent.session.id, await agent.invoke("delegate")
        await agent.invoke("blink")
        async with Agent(host, model="scripted:test") as other:
            await other.invoke("blink")
        of_session = await host.effects_to_undo(session=session)
        of_run = await host.effects_to_undo(session=session, run=first.run)
        with pytest.raises(ValueError, match="needs a session or a run"):
            await host.effects_to_undo()
    assert [one.note["value"] for one in of_session] == [2, 1, 2, 1, 2, 1]
    assert [one.effect for one in of_run] == [one.effect for one in of_session[2:]]
    assert {one.op for one in of_session} == {"lamp.set"}
    assert {one.origin.session for one in of_session[:4]} == {session}
    assert session not in {one.origin.session for one in of_session[4:]}
