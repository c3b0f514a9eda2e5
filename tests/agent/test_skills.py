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


@pytest.fixture
def make_skills(tmp_path):
    def make(**frontmatter):
        for name, lines in frontmatter.items():
            folder = tmp_path / "skills" / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Doubles.\n{lines}---\n")
            (folder / "tools.py").write_text(CODE)
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
