"""The time of a tool call does not include the time in which it waits for a person."""

from time import perf_counter

import anyio
import pytest
import sideband_blobs.plugin
from sideband import Plugin
from sideband.approvals import Approval
from sideband.asking import UserAnswer, UserQuestion
from sideband.hooks import Ask
from sideband.tools import Tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Clock:
    """Measures a call from outside, and the time of the person."""

    def __init__(self):
        self.began = self.seconds = self.asked = self.shown = 0.0

    def plugin(self, kit):
        def tool_execution_start(event):
            self.began = perf_counter()

        def tool_execution_end(event):
            self.seconds, self.shown = perf_counter() - self.began, event.ms / 1000

        return Plugin(
            "hook", "clock", kit.hooks(**{one.__name__: one for one in (tool_execution_start, tool_execution_end)})
        )

    async def think(self):
        began = perf_counter()
        await anyio.sleep(0.05)
        self.asked = perf_counter() - began

    async def answer(self, questions, origin):
        await self.think()
        return [UserAnswer(text="yes") for _ in questions]

    async def approve(self, request):
        await self.think()
        return Approval("allow")


def tool(run):
    return Tool("work", "", {"type": "object", "properties": {}}, dict, run)


async def test_time_excludes_the_questions_of_the_tool(stage, kit):
    async def run(arguments, ctx):
        await ctx.ask([UserQuestion("Really?")])
        return "done"

    clock = Clock()
    options = {"own_tools": [tool(run)], "asker": clock.answer}
    async with stage([Turn(tool_calls=[("work", {})]), "ok"], clock.plugin(kit), **options) as agent:
        await agent.invoke("hi")
    assert 0 < clock.shown <= clock.seconds - clock.asked


async def test_time_excludes_the_approval_of_its_effects(stage, kit):
    async def run(arguments, ctx):
        await ctx.dispatch("blobs.put", {"content": b"text"})
        return "done"

    clock = Clock()
    guards = {"asking": kit.guard(op_call=lambda event: Ask("Really?") if event.op == "blobs.put" else None)}
    options = {"own_tools": [tool(run)], "approver": clock.approve, "guards": guards}
    plugins = [clock.plugin(kit), Plugin("op", "blobs", sideband_blobs.plugin)]
    async with stage([Turn(tool_calls=[("work", {})]), "ok"], *plugins, **options) as agent:
        await agent.invoke("hi")
    assert clock.asked > 0
    assert 0 < clock.shown <= clock.seconds - clock.asked


async def test_questions_at_the_same_time_count_once(stage, kit):
    async def run(arguments, ctx):
        async with anyio.create_task_group() as tasks:
            for text in "abc":
                tasks.start_soon(ctx.ask, [UserQuestion(text)])
        return "done"

    clock = Clock()
    options = {"own_tools": [tool(run)], "asker": clock.answer}
    async with stage([Turn(tool_calls=[("work", {})]), "ok"], clock.plugin(kit), **options) as agent:
        await agent.invoke("hi")
    assert 0 < clock.shown <= clock.seconds - clock.asked
