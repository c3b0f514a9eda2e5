"""The table ``[tools]`` removes tools from all agents, or from those that do not name them."""

import logging
from types import SimpleNamespace

import pytest
from sideband import Plugin
from sideband.tools import Tool
from sideband_agent import ToolRefused
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def make(name, **options):
    async def run(arguments, ctx):
        return "done"

    return Tool(name, "", {"type": "object", "properties": {}}, dict, run, **options)


def notes(**options):
    made = [make("notes.read", **options), make("notes.write", **options)]
    return Plugin("tool", "notes", SimpleNamespace(sideband_tools=lambda: made))


def call(name):
    return Turn(tool_calls=[(name, {})])


def results(agent):
    return [one.text for one in agent.session.messages() if one.role == "tool"]


@pytest.mark.parametrize("disabled", ["notes.write", "notes__write", "notes.w*"])
@pytest.mark.parametrize("named", [None, ["notes.read", "notes.write"]])
async def test_disabled_tool_is_in_no_agent(stage, disabled, named):
    settings = {"tools": {"disabled": [disabled]}}
    async with stage([call("notes__write"), "ok"], notes(), settings=settings, tools=named) as agent:
        await agent.invoke("hi")
        assert agent.tools.names == ("notes.read",)
        assert "unknown tool `notes__write`" in results(agent)[0]


async def test_disabled_tool_is_not_offered_by_a_program_either(stage):
    settings = {"tools": {"disabled": ["look_up"]}}
    async with stage(["ok"], settings=settings) as agent:
        with pytest.raises(ToolRefused, match="restricted"):
            agent.offer(make("look_up"))


async def test_disabled_tool_is_not_in_a_child(stage):
    async def delegate(arguments, ctx):
        return (await ctx.spawn_child("work")).text

    own = [Tool("delegate", "", {"type": "object"}, dict, delegate)]
    settings = {"tools": {"disabled": ["notes.write"]}}
    turns = [call("delegate"), call("notes__write"), "child", "ok"]
    async with stage(turns, notes(), settings=settings, own_tools=own) as agent:
        await agent.invoke("hi")
        (rejected,) = [one.text for one in agent.scripted.requests[2].messages if one.role == "tool"]
    assert "unknown tool `notes__write`" in rejected


@pytest.mark.parametrize(
    ("named", "has"),
    [(None, False), (["notes.*"], False), (["*"], False), (["notes.write"], True), (["notes__write"], True)],
)
@pytest.mark.parametrize("by_setting", [True, False])
async def test_explicit_tool_is_only_in_an_agent_that_names_it(stage, named, has, by_setting):
    settings = {"tools": {"explicit": ["notes.*"]}} if by_setting else {}
    async with stage(["ok"], notes(explicit=not by_setting), settings=settings, tools=named) as agent:
        assert ("notes.write" in agent.tools.names) is has


async def test_child_has_an_explicit_tool_of_its_parent(stage):
    async def delegate(arguments, ctx):
        return (await ctx.spawn_child("work")).text

    own = [Tool("delegate", "", {"type": "object"}, dict, delegate)]
    turns = [call("delegate"), call("notes__write"), "child", "ok"]
    async with stage(turns, notes(explicit=True), own_tools=own, tools=["delegate", "notes.write"]) as agent:
        await agent.invoke("hi")
        (answer,) = [one.text for one in agent.scripted.requests[2].messages if one.role == "tool"]
    assert answer == "done"


async def test_unknown_names_in_the_settings_are_reported(stage, caplog):
    with caplog.at_level(logging.WARNING):
        async with stage(["ok"], notes(), settings={"tools": {"disabled": ["notes.wirte"]}}):
            pass
    assert "unknown tool `notes.wirte` in `[tools] disabled` (did you mean `notes.write`?)" in caplog.text
