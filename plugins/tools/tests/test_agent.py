"""The tools in a real agent."""

import re

import pytest
import sideband_llm.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
import sideband_tools.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

LINES = "".join(f"line {number}: {'x' * 40}\n" for number in range(3_000))


class Nothing(BaseModel):
    pass


@tool("much")
async def much(params: Nothing, ctx: ToolContext) -> str:
    """Return much text."""
    return LINES


@pytest.fixture
def open_agent(tmp_path, folder):
    def open_host(script):
        tools = [getattr(sideband_tools.plugin, name) for name in ("output", "skill", "subagent")]
        return Host(
            home=tmp_path / "home",
            plugins=[
                Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
                Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
                Plugin(kind="op", name="llm", value=sideband_llm.plugin),
                Plugin(kind="provider", name="scripted", value=script),
                *(Plugin(kind="tool", name=one.name, value=one) for one in [*tools, much]),
            ],
            autoload=False,
            skill_dirs=[folder.parent],
        )

    return open_host


async def run(host):
    async with host, Agent(host, model="scripted:test") as agent:
        return await agent.invoke("go")


def results(run_):
    return [message for message in run_.messages if message.role == "tool"]


async def test_child_runs_its_task_with_the_given_tools(open_agent):
    script = Scripted(
        [
            Turn(tool_calls=[("subagent", {"task": "read it", "tools": ["skill", "greeter*"]})]),
            Turn(tool_calls=[("much", {}), ("skill", {"name": "greeter"})]),
            "Be kind.",
            "done",
        ]
    )
    ended = await run(open_agent(script))
    assert (ended.status, ended.text) == ("completed", "done")
    (result,) = results(ended)
    assert result.text.startswith("Be kind.\n\n[the agent completed its task; ")
    refused, read = [message for message in script.requests[2].messages if message.role == "tool"]
    assert refused.is_error
    assert "How to greet" in read.text


async def test_omitted_part_of_a_result_can_be_read(open_agent):
    def ask(request):
        handle = re.search(r"[0-9a-f]{16}", request.messages[-1].text).group()
        return Turn(tool_calls=[("output", {"handle": handle, "pattern": "line 1500:"})])

    script = Scripted([Turn(tool_calls=[("much", {})]), ask, "done"])
    cut, found = results(await run(open_agent(script)))
    assert "line 1500:" not in cut.text
    assert f": line 1500: {'x' * 40}" in found.text


async def test_failed_calls_are_reported_with_the_cause(open_agent):
    script = Scripted(
        [Turn(tool_calls=[("skill", {"name": "greter"}), ("output", {"handle": "none"}), ("subagent", {})]), "done"]
    )
    unknown, missing, invalid = results(await run(open_agent(script)))
    assert unknown.is_error
    assert missing.is_error
    assert invalid.is_error
    assert "greeter" in unknown.text
    assert "task" in invalid.text
