"""All agents of a host share the view of its tools, which follows every change of plugins and skills."""

import sys
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.loading import LoadedSkills, SkillSpec, ToolSpec
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


def skill(name, folder):
    spec = ToolSpec(name, "go", "tools.py", "Go.", {"type": "object"}, validate=dict)
    return SkillSpec(name=name, key=name, description=f"The skill {name}.", source=folder, tools=(spec,))


def loader(found):
    async def load(sources):
        return LoadedSkills(tuple(found))

    return Plugin("loader", "list", SimpleNamespace(sideband_loaders=lambda: [SimpleNamespace(name="l", load=load)]))


async def test_agents_share_the_view_of_the_tools_and_the_descriptions_of_skills(stage, kit, tmp_path):
    async with stage(["ok"], kit.echo, loader([skill("one", tmp_path)])) as agent, Agent(agent.host) as other:
        assert other.tools is agent.tools
        assert (await other.skills())[0] is (await agent.skills())[0]


async def test_schema_of_each_tool_is_checked_once_for_all_agents(stage, kit, tmp_path):
    checked = Counter()

    def profile(frame, event, _argument):
        checked[frame.f_code.co_name] += event == "call"

    sys.setprofile(profile)
    try:
        async with stage(["ok"], kit.echo, loader([skill("one", tmp_path)])) as agent, Agent(agent.host):
            pass
    finally:
        sys.setprofile(None)
    assert checked["schema_size"] == 2


async def test_skills_that_are_loaded_again_are_seen_at_once(stage, kit, tmp_path):
    found = [skill("one", tmp_path)]
    async with stage(["ok"], kit.echo, loader(found)) as agent:
        assert [one["name"] for one in await agent.skills()] == ["one"]
        found[:] = [skill("two", tmp_path)]
        await agent.reload()
        assert agent.tools.names == ("echo", "two.go")
        assert [one["name"] for one in await agent.skills()] == ["two"]


async def test_tools_of_a_plugin_that_failed_are_omitted_at_once(stage, kit):
    fail = anyio.Event()

    async def wait_and_fail():
        await fail.wait()
        raise RuntimeError("bad luck")

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_fail)
            yield

    failing = SimpleNamespace(sideband_tools=lambda: [kit.echo.value], lifespan=lifespan)
    async with stage(["ok"], Plugin("tool", "echo", failing)) as agent:
        assert agent.tools.names == ("echo",)
        (record,) = agent.host.plugins.why("echo")
        fail.set()
        with anyio.fail_after(5):
            while not record.state.broken:
                await anyio.lowlevel.checkpoint()
        async with Agent(agent.host) as other:
            assert other.tools.names == ()
        assert "bad luck" in agent.host.tools.problems[0]


async def test_descriptions_of_skills_are_immutable(stage, kit, tmp_path):
    async with stage(["ok"], loader([skill("one", tmp_path)])) as agent:
        (described,) = await agent.skills()
        with pytest.raises(TypeError, match="immutable"):
            described["name"] = "other"
        with pytest.raises(TypeError, match="immutable"):
            described["tools"].append("other")
