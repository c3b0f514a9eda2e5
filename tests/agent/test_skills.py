"""Skills as tools of an agent."""

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
    """Wait forever."""
    await asyncio.sleep(3600)
    return 1
'''

SPINNING = '''
from sideband.skill import tool

@tool
async def spin() -> int:
    """Compute forever."""
    while True: pass

@tool
async def quick() -> int:
    """Return a number."""
    return 42
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


async def test_skill_function_is_a_tool(stage, make_skills):
    turns = [Turn(tool_calls=[("doubling__double", {"number": 21})]), "it is 42"]
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    settings = {"agent": {"model": "scripted:test"}, "policy": {"isolation": "none"}}
    folders = [make_skills(doubling="")]
    async with stage(turns, skills, settings=settings, skill_dirs=folders) as agent:
        await agent.invoke("double 21")
        assert [message.text for message in agent.session.messages()][2] == "42"


@pytest.mark.parametrize(
    "lines", ["disable-model-invocation: True\n", "metadata:\n  disable-model-invocation: 'yes'\n"]
)
async def test_skill_with_model_invocation_disabled_is_hidden_from_models(stage, make_skills, lines):
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    folders = [make_skills(doubling="", secretly=lines)]
    async with stage([], skills, skill_dirs=folders) as agent:
        assert agent.tools.names == ("doubling.double",)
        assert [skill["name"] for skill in await agent.skills()] == ["doubling"]


async def waited(stage, make_skills, policy, agent, lines=""):
    """Return the result of a call of a tool that never returns."""
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    settings = {"agent": {"model": "scripted:test", **agent}, "policy": {"isolation": "none", **policy}}
    turns = [Turn(tool_calls=[("endless__wait", {})]), "it does not end"]
    folders = [make_skills(ENDLESS, endless=lines)]
    async with stage(turns, skills, settings=settings, skill_dirs=folders) as opened:
        assert (await opened.invoke("wait")).text == "it does not end"
        (answer,) = [message for message in opened.session.messages() if message.role == "tool"]
    return answer


async def test_policy_timeout_applies_to_a_skill(stage, make_skills, monkeypatch):
    monkeypatch.setattr("sideband_agent._tools._tool_effects.PLUGIN_TOOL_SECONDS", 0.01)
    answer = await waited(stage, make_skills, {"timeout": 0.6}, {})
    assert answer.metadata["code"] == "call.timeout"
    assert "0.6 s" in answer.text
    assert "tool_seconds" not in answer.text


async def test_tool_seconds_below_the_policy_timeout_is_named(stage, make_skills):
    answer = await waited(stage, make_skills, {"timeout": 30.0}, {"tool_seconds": 0.3})
    assert answer.metadata["code"] == "op.timeout"
    assert "endless.wait timed out after 0.3 s (set by `[agent] tool_seconds`)" in answer.text
    assert "`sideband.isolation: call`" in answer.text


async def test_skills_own_timeout_takes_precedence_over_tool_seconds(stage, make_skills):
    lines = "metadata:\n  sideband.timeout: '0.6'\n"
    answer = await waited(stage, make_skills, {}, {"tool_seconds": 0.1}, lines)
    assert "0.6 s" in answer.text
    assert "tool_seconds" not in answer.text


@pytest.mark.parametrize("lines", ["", "metadata:\n  sideband.timeout: '6'\n"])
async def test_tool_of_a_turn_that_computes_forever_fails_alone_and_names_its_line(stage, make_skills, lines):
    skills = Plugin("loader", "skills", sideband_skills.plugin)
    settings = {"agent": {"model": "scripted:test"}, "policy": {"isolation": "none", "timeout": 6.0}}
    turns = [Turn(tool_calls=[("spinning__spin", {}), ("spinning__quick", {})]), "done"]
    folders = [make_skills(SPINNING, spinning=lines)]
    async with stage(turns, skills, settings=settings, skill_dirs=folders) as agent:
        await agent.invoke("compute")
        spun, quick = (message for message in agent.session.messages() if message.role == "tool")
    assert quick.text == "42"
    assert spun.metadata["code"] == "call.timeout"
    assert "did not end within 6 s; its worker was blocked at tools.py, line 7, in spin. end the loop" in spun.text
