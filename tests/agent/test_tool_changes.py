"""Tools that change while an agent works: its tools are resolved at the start of each turn."""

from types import SimpleNamespace

import pytest
from sideband import Plugin
from sideband.loading import LoadedSkills, SkillSpec, ToolSpec
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def skill(name, folder, description="Go."):
    spec = ToolSpec(name, "go", "tools.py", description, {"type": "object"}, validate=dict)
    return SkillSpec(name=name, key=name, description=f"The skill {name}.", source=folder, tools=(spec,))


def loader(found):
    async def load(sources):
        return LoadedSkills(tuple(found))

    return Plugin("loader", "list", SimpleNamespace(sideband_loaders=lambda: [SimpleNamespace(name="l", load=load)]))


def changing(kit, change):
    """Return a plugin with a tool that makes a change and lets another agent load the tools again."""

    @tool("change", exclusive=True)
    async def run(params: kit.Text, ctx) -> str:
        """Change the tools."""
        change()
        async with Agent(ctx.agent.host) as other:
            await other.reload()
        return "changed"

    return Plugin("tool", "change", run)


def sent(request):
    return [one.name for one in request.tools]


async def test_turn_has_the_tools_that_exist_at_its_start(stage, kit, tmp_path):
    found = [skill("one", tmp_path)]

    def change():
        found[:] = [skill("two", tmp_path)]

    async with stage([Turn(tool_calls=[("change", {})]), "ok"], changing(kit, change), loader(found)) as agent:
        await agent.invoke("hi")
        assert [sent(one) for one in agent.scripted.requests] == [["change", "one__go"], ["change", "two__go"]]
        assert agent.tools.names == ("change", "two.go")


async def test_restricted_agent_gets_only_the_new_tools_that_it_already_may_call(stage, kit, tmp_path):
    found = [skill("one", tmp_path)]

    def change():
        found[:] = [skill("two", tmp_path), skill("three", tmp_path)]

    turns = [Turn(tool_calls=[("change", {})]), Turn(tool_calls=[("three__go", {})]), "ok"]
    plugins = changing(kit, change), loader(found)
    async with stage(turns, *plugins, tools=["change", "one.go", "tw*"]) as agent:
        await agent.invoke("hi")
        assert sent(agent.scripted.requests[1]) == ["change", "two__go"]
        assert "unknown tool `three__go`" in agent.session.messages()[-2].text


async def test_agent_can_be_restricted_to_sources_of_tools(stage, kit, tmp_path):
    async with stage(["ok"], kit.echo, loader([skill("one", tmp_path)]), sources=["skill *"]) as agent:
        assert agent.tools.names == ("one.go",)


@pytest.mark.parametrize(
    ("after", "runs"),
    [
        pytest.param([], False, id="removed"),
        pytest.param(["Go. Obey."], False, id="changed"),
        pytest.param(["Go."], True, id="same"),
    ],
)
async def test_call_whose_tool_was_removed_or_changed_before_it_begins_is_not_run(stage, kit, tmp_path, after, runs):
    found = [skill("one", tmp_path)]

    def change():
        found[:] = [skill("one", tmp_path, description) for description in after]

    turns = [Turn(tool_calls=[("change", {}), ("one__go", {})]), "ok"]
    async with stage(turns, changing(kit, change), loader(found)) as agent:
        await agent.invoke("hi")
        answer = agent.session.messages()[-2]
        assert ("removed or changed" in answer.text) is not runs
        assert (answer.metadata["code"] == "tool.rejected") is not runs


async def test_child_loses_a_tool_with_its_parent_and_gets_no_new_one(stage, kit, tmp_path):
    found = [skill("one", tmp_path)]

    def change():
        found[:] = [skill("two", tmp_path)]

    @tool("delegate")
    async def delegate(params: kit.Text, ctx) -> str:
        """Let a child work."""
        return (await ctx.spawn_child("work")).text

    calls = [("change", {}), ("one__go", {}), ("two__go", {})]
    turns = [Turn(tool_calls=[("delegate", {})]), Turn(tool_calls=calls), "child", "ok"]
    plugins = Plugin("tool", "delegate", delegate), changing(kit, change), loader(found)
    async with stage(turns, *plugins) as agent:
        await agent.invoke("hi")
        requests = agent.scripted.requests
        assert sent(requests[1]) == sent(requests[2]) == ["change", "delegate", "one__go"]
        changed, one, two = [message.text for message in requests[2].messages if message.role == "tool"]
        assert changed == "changed"
        assert "was removed or changed" in one
        assert "unknown tool `two__go`" in two
