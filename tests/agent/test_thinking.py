"""The level of thinking: selected by the user, stored in the session, used by model calls and restored."""

from typing import get_args

import pytest
from sideband import Plugin
from sideband.settings import ThinkingLevel
from sideband.tools import tool
from sideband_agent import Agent, AgentBusy, ThinkingUnknown
from sideband_agent.sessions import ThinkingEntry
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

LOW = {"agent": {"model": "scripted:test", "thinking": "low"}}


@pytest.fixture
def seen(kit):
    events = []
    return events, Plugin("hook", "watcher", kit.listening(events, "thinking_level_select"))


def outline(events):
    return [(one.level, one.previous, one.source) for one in events]


async def test_model_calls_use_the_selected_level(stage, seen):
    events, plugin = seen
    async with stage(["one", "two"], plugin, settings=LOW) as agent:
        await agent.invoke("first")
        await agent.select_thinking("high")
        await agent.invoke("second")
        assert [one.thinking for one in agent.scripted.requests] == ["low", "high"]
        assert agent.thinking == "high"
    assert outline(events) == [("high", "low", "set")]


async def test_source_of_a_level_is_passed_on(stage, seen):
    events, plugin = seen
    async with stage([], plugin) as agent:
        await agent.select_thinking("low", source="cycle")
    assert outline(events) == [("low", None, "cycle")]


@pytest.mark.parametrize("level", get_args(ThinkingLevel))
async def test_each_level_can_be_selected(stage, level):
    async with stage(["one"]) as agent:
        await agent.select_thinking(level)
        await agent.invoke("first")
        assert agent.scripted.requests[0].thinking == level


async def test_unknown_level_is_refused(stage, seen):
    events, plugin = seen
    async with stage([], plugin) as agent:
        with pytest.raises(ThinkingUnknown, match="unknown level of thinking: `deep`") as caught:
            await agent.select_thinking("deep")
        assert caught.value.hint == "use one of off, low, medium, high"
        assert not [one for one in agent.session.path() if one.type == "thinking"]
    assert events == []


async def test_level_of_another_program_is_ignored(stage):
    async with stage(["one"], settings=LOW) as agent:
        await agent.session.append(ThinkingEntry(level="xhigh"))
        await agent.invoke("first")
        assert agent.scripted.requests[0].thinking == "low"


async def test_level_cannot_change_during_a_run(stage, kit):
    @tool("change")
    async def change(params: kit.Text, ctx) -> str:
        """Change the level."""
        with pytest.raises(AgentBusy):
            await ctx.agent.select_thinking("high")
        return "refused"

    async with stage([Turn(tool_calls=[("change", {})]), "ok"], Plugin("tool", "change", change)) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[2].text == "refused"


async def test_level_is_restored_with_its_session(stage, seen):
    events, plugin = seen
    async with stage(["one", "two"], plugin, settings=LOW) as agent:
        first = agent.session.id
        await agent.select_thinking("high")
        await agent.invoke("first")
        await agent.new_session()
        assert agent.thinking == "low"
        await agent.switch_session(first)
        await agent.invoke("second")
        assert agent.scripted.requests[-1].thinking == "high"
    assert outline(events)[1:] == [("low", "high", "restore"), ("high", "low", "restore")]


async def test_level_is_restored_when_an_agent_resumes_its_session(stage, seen):
    events, plugin = seen
    async with stage(["one"], plugin, settings=LOW) as agent:
        await agent.select_thinking("high")
        await agent.invoke("first")
        session = agent.session.id
        await agent.new_session()
        events.clear()
        async with Agent(agent.host, session=session) as other:
            assert other.thinking == "high"
    assert outline(events) == [("high", "low", "restore")]


async def test_level_is_restored_by_a_rewind(stage, seen):
    events, plugin = seen
    async with stage([], plugin, settings=LOW) as agent:
        await agent.select_thinking("medium")
        back = agent.session.leaf
        await agent.select_thinking("high")
        await agent.rewind(back)
        assert agent.thinking == "medium"
    assert outline(events)[-1] == ("medium", "high", "restore")


async def test_fork_keeps_the_level(stage, seen):
    events, plugin = seen
    async with stage(["one"], plugin) as agent:
        await agent.select_thinking("high")
        await agent.fork()
        assert agent.thinking == "high"
    assert len(events) == 1


async def test_child_thinks_as_its_parent(stage, kit, seen):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child("do it")).text

    events, plugin = seen
    turns = [Turn(tool_calls=[("helper", {})]), "done", "ok"]
    async with stage(turns, Plugin("tool", "helper", helper), plugin, settings=LOW) as agent:
        await agent.select_thinking("high")
        await agent.invoke("hi")
        assert [one.thinking for one in agent.scripted.requests] == ["high"] * 3
    assert len(events) == 1
