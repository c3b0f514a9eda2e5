"""Approvals while one host is open: of calls whose tools are reloaded meanwhile, and of children."""

import pytest
import sideband_skills.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, hookimpl
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

SKILL = "---\nname: buyer\ndescription: Buys.\n---\nCall `buy`.\n"
BUY = 'from sideband.skill import tool\n@tool\nasync def buy() -> str:\n    """Buy."""\n    return "bought"\n'


class Careful:
    @hookimpl
    def tool_call(self, event):
        return Ask("May it run?")


class Nothing(BaseModel):
    pass


class More(BaseModel):
    fast: bool = False


def own(params):
    @tool("deploy")
    async def run(_: params, ctx) -> str:
        """Deploy."""
        return "deployed"

    return run


@pytest.mark.parametrize("changed", [False, True])
async def test_answer_for_a_skill_holds_after_a_reload_only_if_its_code_is_the_same(stage, tmp_path, changed):
    folder = tmp_path / "skills" / "buyer"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "tools.py").write_text(BUY)
    turns = [Turn(tool_calls=[("buyer__buy", {})]), "done"]
    options = {"guards": {"careful": Careful}, "settings": {"policy": {"isolation": "none"}}}
    loader = Plugin("loader", "skills", sideband_skills.plugin)
    async with stage(turns, loader, skill_dirs=[tmp_path / "skills"], **options) as agent:
        first = await agent.invoke("go")
        (request,) = first.requests
        await agent.host.approvals.answer(request, Approval("allow"))
        if changed:
            (folder / "tools.py").write_text(BUY.replace("bought", "stolen"))
        await agent.reload()
        result = await agent.resume()
        assert result.status == ("parked" if changed else "completed")
        assert (request in result.requests, len(result.requests)) == (False, int(changed))


@pytest.mark.parametrize("changed", [False, True])
async def test_answer_for_an_own_tool_holds_only_if_its_declaration_is_the_same(stage, changed):
    turns = [Turn(tool_calls=[("deploy", {})]), "done"]
    async with stage(turns, own_tools=[own(Nothing)], guards={"careful": Careful}) as agent:
        first = await agent.invoke("go")
        (request,) = first.requests
        await agent.host.approvals.answer(request, Approval("allow"))
        agent.withdraw("deploy")
        agent.offer(own(More if changed else Nothing))
        await agent.reload()
        result = await agent.resume()
        assert result.status == ("parked" if changed else "completed")


async def test_request_of_a_child_that_cannot_continue_ends_with_it(stage, kit):
    results = []

    @tool("delegate")
    async def delegate(params: kit.Text, ctx) -> str:
        """Let a child work."""
        results.append(await ctx.spawn_child("work"))
        return results[0].status

    class AboutEcho:
        @hookimpl
        def tool_call(self, event):
            return Ask("May it?") if event.tool == "echo" else None

    turns = [Turn(tool_calls=[("delegate", {})]), Turn(tool_calls=[("echo", {})]), "ok"]
    async with stage(turns, kit.echo, Plugin("tool", "delegate", delegate), guards={"careful": AboutEcho}) as agent:
        result = await agent.invoke("go")
        assert (result.status, results[0].status, len(results[0].requests)) == ("completed", "parked", 1)
        assert list(await agent.host.approvals.list()) == []
