"""Tools that need rights, in a run that cannot ask."""

import pytest
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings():
    return {"commands": False, "local_hosts": ["127.0.0.1"]}


async def test_run_waits_at_the_first_reading_tool_that_needs_rights(scripted_host, work, http_server):
    (work / "a.txt").write_text("inside\n")
    http_server.reply("hello", kind="text/plain")
    in_places = [
        ("read", {"path": "a.txt"}),
        ("list", {}),
        ("glob", {"pattern": "*.txt"}),
        ("grep", {"pattern": "inside"}),
    ]
    host, script = scripted_host()
    async with host as opened, Agent(opened, folder=work) as agent:
        for calls in ([one] for one in (*in_places, ("fetch", {"url": http_server.url("/")}))):
            script.turns += [Turn(tool_calls=calls), "done"]
            ran = await agent.invoke("go")
            assert (ran.status, len(ran.requests)) == ("parked", 1)
            await opened.approvals.answer(ran.requests[0], Approval("allow", "once"))
            ran = await agent.resume()
            assert ran.status == "completed", ran.error
            (result,) = [one for one in ran.messages if one.role == "tool"]
            assert not result.is_error, result.text


async def test_remedy_for_the_rights_of_tools_holds_for_later_calls_too(scripted_host, work):
    host, script = scripted_host()
    async with host as opened, Agent(opened, folder=work) as agent:
        script.turns += [Turn(tool_calls=[("list", {})]), "done"]
        ran = await agent.invoke("go")
        assert f"sideband approvals approve {ran.requests[0]} --session" in ran.error["hint"]
