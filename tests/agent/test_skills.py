"""Skills in the hands of an agent."""

import pytest
import sideband_skills.plugin
from sideband import Plugin
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

CODE = '''
from sideband.skill import tool

@tool
async def double(number: int) -> int:
    """Double a number."""
    return number * 2
'''
ENDLESS = '''
import asyncio
from sideband.skill import tool

@tool
async def wait() -> int:
    """Wait for ever."""
    await asyncio.sleep(3600)
    return 1
'''


@pytest.fixture
def make_skills(tmp_path):
    def make(code=CODE, **frontmatter):
        for name, lines in frontmatter.items():
            folder = tmp_path / "skills" / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Doubles.\n{lines}---\n")
            (folder / "tools.py").write_text(code)
        return tmp_path / "skills"

    return make


async def test_a_skill_is_a_tool(stage, make_skills):
    turns = [Turn(tool_calls=[("doubling__double", {"number": 21})]), "it is 42"]
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    settings = {"agent": {"model": "scripted:test"}, "policy": {"isolation": "none"}}
    folders = [make_skills(doubling="")]
    async with stage(turns, skills, settings=settings, skill_dirs=folders) as agent:
        await agent.invoke("double 21")
        assert [message.text for message in agent.session.messages()][2] == "42"


@pytest.mark.parametrize(
    "lines", ["disable-model-invocation: true\n", "metadata:\n  disable-model-invocation: 'true'\n"]
)
async def test_a_skill_that_is_for_people_only_is_told_to_no_model(stage, make_skills, lines):
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    folders = [make_skills(doubling="", secretly=lines)]
    async with stage([], skills, skill_dirs=folders) as agent:
        assert agent.tools.names == ("doubling.double",)
        assert [skill["name"] for skill in await agent.skills()] == ["doubling"]


async def waited(stage, make_skills, policy, agent, lines=""):
    """The result of a call of a tool that never ends."""
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    settings = {"agent": {"model": "scripted:test", **agent}, "policy": {"isolation": "none", **policy}}
    turns = [Turn(tool_calls=[("endless__wait", {})]), "it does not end"]
    folders = [make_skills(ENDLESS, endless=lines)]
    async with stage(turns, skills, settings=settings, skill_dirs=folders) as opened:
        assert (await opened.invoke("wait")).text == "it does not end"
        (answer,) = [message for message in opened.session.messages() if message.role == "tool"]
    return answer


async def test_a_skill_has_the_time_that_the_policy_gives_it(stage, make_skills, monkeypatch):
    monkeypatch.setattr("sideband_agent._tools._tool_effects.PLUGIN_TOOL_SECONDS", 0.01)
    answer = await waited(stage, make_skills, {"timeout": 1.5}, {})
    assert answer.metadata["code"] == "call.timeout"
    assert "endless.wait did not end within 1.5 s" in answer.text
    assert "tool_seconds" not in answer.text


async def test_a_setting_that_is_below_the_policy_says_that_it_ended_the_call(stage, make_skills):
    answer = await waited(stage, make_skills, {"timeout": 3000.0}, {"tool_seconds": 0.5})
    assert answer.metadata["code"] == "op.timeout"
    assert "endless.wait did not end within 0.5 s, the limit that `[agent] tool_seconds` sets" in answer.text


async def test_the_setting_does_not_cut_a_skill_that_names_its_own_limit(stage, make_skills):
    lines = "metadata:\n  sideband.timeout: '1.5'\n"
    answer = await waited(stage, make_skills, {}, {"tool_seconds": 0.1}, lines)
    assert "endless.wait did not end within 1.5 s" in answer.text
    assert "tool_seconds" not in answer.text
