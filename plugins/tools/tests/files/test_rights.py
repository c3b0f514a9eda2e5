import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband.grants import given_grants, revoke_grant
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def grants():
    return []


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_revoked_rights_are_asked_for_again_in_a_running_session(scripted_host, work, calling, scope):
    answers, asked = [Approval("allow", scope), Approval("deny", reason="revoked")], []

    async def approve(request):
        asked.append(request.subject)
        return answers.pop(0)

    (work / "a.txt").write_text("hello")
    host, script = scripted_host()
    async with host as opened, Agent(opened, folder=work, approver=approve) as agent:
        call = calling(agent, script)
        assert [(await call("read", path="a.txt")).text for _ in range(2)] == ["1\thello"] * 2
        store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
        async with Host(home=opened.home, plugins=[store], autoload=False) as other:  # such as `sideband grants revoke`
            revoker = other if scope == "always" else opened
            (given,) = await given_grants(revoker)
            await revoke_grant(revoker, given.id)
        assert "the user refused to grant them: revoked" in (await call("read", path="a.txt")).text
    assert asked == ["plugin:tools"] * 2
