"""The questions about hosts."""

import pytest
from sideband.approvals import Approval
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings():
    return {"local_hosts": ["127.0.0.1"]}


async def test_user_is_asked_for_each_host_once(scripted_host, work, http_server, calling):
    asked = []

    async def approve(request):
        asked.append(request.effect["capabilities"])
        return Approval("allow", "session")

    http_server.reply("hello", kind="text/plain")
    host, script = scripted_host()
    async with host as opened, Agent(opened, folder=work, approver=approve) as agent:
        for path in ("/", "/other"):
            await calling(agent, script)("fetch", url=http_server.url(path))
    assert asked == [["http:host=127.0.0.1,method=GET,network=link-local|loopback|private|public"]]
    assert len(http_server.requests) == 2
