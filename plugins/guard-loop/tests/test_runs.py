"""Runs of an agent whose model repeats its calls."""

from types import SimpleNamespace

import pytest
import sideband_guard_loop.plugin
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio


class Path(BaseModel):
    path: str = "a"


@pytest.fixture
def run_agent(tmp_path):
    """Run an agent whose model makes one call per turn, each with a path."""

    async def run(paths, *, fails, read_only=False):
        ran = []

        @tool("look", read_only=read_only)
        async def look(params: Path, ctx: ToolContext) -> str:
            """Look at something."""
            ran.append(params.path)
            if fails:
                raise ValueError("nothing there")
            return "the same as ever"

        plugins = [
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            Plugin(kind="provider", name="scripted", value=Scripted([*map(call, paths), "done"])),
            Plugin(kind="guard", name="guard-loop", value=sideband_guard_loop.plugin),
            Plugin(kind="tool", name="look", value=look),
        ]
        async with Host(home=tmp_path, plugins=plugins, autoload=False) as host, Agent(host, model="scripted:m") as one:
            result = await one.invoke("look")
        results = [message.text for message in result.messages if message.role == "tool"]
        return SimpleNamespace(result=result, ran=ran, results=results)

    return run


def call(path):
    return Turn(tool_calls=[("look", {"path": path})])


async def test_failing_call_is_warned_about_then_denied_then_halts_the_run(run_agent):
    done = await run_agent(["a"] * 20, fails=True)
    assert len(done.ran) == 5
    assert "repeated_exact_failure_warning" not in done.results[0]
    assert "[guard-loop] repeated_exact_failure_warning" in done.results[1]
    assert "repeated_exact_failure_block" in done.results[5]
    assert done.result.error["code"] == "agent.halted"
    assert "same_tool_failure_halt" in done.result.error["message"]
    assert len(done.results) == 9


async def test_run_with_varied_calls_completes(run_agent):
    done = await run_agent(["a", "a", "b", "c"], fails=True)
    assert (done.result.status, done.result.text) == ("completed", "done")
    assert len(done.ran) == 4


async def test_repeated_read_is_denied(run_agent):
    done = await run_agent(["a"] * 7, fails=False, read_only=True)
    assert (done.result.status, len(done.ran)) == ("completed", 5)
    assert "idempotent_no_progress_warning" in done.results[1]
    assert "idempotent_no_progress_block" in done.results[6]


async def test_repeated_success_of_a_writing_tool_is_allowed(run_agent):
    done = await run_agent(["a"] * 12, fails=False)
    assert (done.result.status, len(done.ran)) == ("completed", 12)
    assert done.results == ["the same as ever"] * 12
