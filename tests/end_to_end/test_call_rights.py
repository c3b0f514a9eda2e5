"""The grant of a call, its worker, its timeout, and the snapshot of its skill."""

from types import SimpleNamespace

import pytest
from sideband import CallRequest, Host, Plugin, hookimpl
from sideband.hooks import Deny
from sideband.workers import CallTimeout, SkillFailed

pytestmark = pytest.mark.anyio

CODE = """
import asyncio
from sideband.skill import tool

calls = 0

@tool
async def count() -> int:
    global calls
    calls += 1
    return calls

@tool(timeout=0.3)
async def hang() -> None:
    await asyncio.sleep(60)

@tool
async def wait() -> None:
    await asyncio.sleep(60)
"""
LOOK = """
from sideband.skill import sql, tool

@tool
async def look() -> None:
    await sql.query("SELECT 1", db="a.db")
"""


@pytest.fixture
def make_host(tmp_path):
    def make(*folders, **options):
        return Host(home=tmp_path / "home", skill_dirs=folders, **options)

    return make


async def test_calls_with_equal_skill_grant_and_principal_share_a_worker(make_host, make_skill):
    async def count(**options):
        return (await host.run(CallRequest("shared.count", **options))).output

    async with make_host(make_skill("shared", CODE)) as host:
        assert [await count(grants=()), await count(grants=())] == [1, 2]
        assert await count(grants=("http:host=127.0.0.1",)) == 1
        assert await count(grants=(), principal="another") == 1
        assert await count(grants=()) == 3


async def test_hint_of_a_call_that_a_guard_denied_does_not_blame_the_skill(make_host, make_skill):
    class Strict:
        @hookimpl
        def op_call(self, event):
            return Deny("not at night")

    folder = make_skill("eager", LOOK, "sql:path=a.db")
    options = {"plugins": [Plugin("guard", "strict", Strict)], "grants": {"eager": ["sql:path=a.db"]}}
    async with make_host(folder, **options) as host:
        with pytest.raises(SkillFailed, match="not at night") as caught:
            await host.call("eager.look")
    assert (caught.value.hint, caught.value.exit_code) == ("", 3)


async def test_grant_is_narrowed_to_the_capabilities_that_the_skill_requests(make_host, make_skill):
    settings = {"grants": {"modest": ["http:network=loopback"]}}
    async with make_host(make_skill("modest", CODE, "http:host=127.0.0.1"), settings=settings) as host:
        assert (await host.run(CallRequest("modest.count"))).grant == ("http:host=127.0.0.1,network=loopback",)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize(("tool", "metadata"), [("hang", {}), ("wait", {"timeout": "0.3"})])
async def test_timeout_of_the_tool_or_its_skill_is_enforced(make_host, make_skill, tool, metadata):
    async with make_host(make_skill("slow", CODE, **metadata)) as host:
        with pytest.raises(CallTimeout, match=r"0\.3"):
            await host.run(CallRequest(f"slow.{tool}", grants=()))


async def test_host_uses_its_snapshot_when_the_skill_changes(make_host, make_skill):
    folder = make_skill("steady", CODE)
    async with make_host(folder) as host:
        assert await host.call("steady.count") == 1
        (folder / "tools.py").write_text(CODE.replace("calls += 1", "calls += 100"))
        assert await host.call("steady.count") == 2
    async with make_host(folder) as host:
        assert await host.call("steady.count") == 100


async def test_invalid_op_family_fails_at_its_first_use(make_host, make_skill):
    code = CODE.replace("import tool", "import broken, tool").replace("calls += 1", "await broken.do()")
    broken = Plugin(kind="op", name="broken", value=SimpleNamespace())
    async with make_host(make_skill("uses", code), plugins=[broken]) as host:
        with pytest.raises(SkillFailed, match="broken"):
            await host.run(CallRequest("uses.count", grants=()))
