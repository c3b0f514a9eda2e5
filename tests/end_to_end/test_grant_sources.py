"""The record of an effect contains the source of each capability."""

import pytest
from sideband import CallRequest, Host
from sideband.approvals import Approval
from sideband.ledger import query

pytestmark = pytest.mark.anyio

SQL = "sql:path=test.db,mode=write"
SKILL = """
from sideband.skill import sql, tool

@tool
async def go() -> int:
    await sql.execute("CREATE TABLE IF NOT EXISTS t (n)", db="test.db")
    return 1
"""


@pytest.fixture
def make_host(tmp_path):
    def make(*folders, **options):
        return Host(home=tmp_path / "home", skill_dirs=folders, **options)

    return make


async def yes(request):
    return Approval("allow", "always")


async def given_by(host):
    (newest,) = await query(host.ledger.folder, op="sql.execute", limit=1)
    assert len(newest.grant) == len(newest.granted_by)
    return newest.granted_by


async def test_source_is_the_person_at_first_and_the_remembered_grant_later(make_host, make_skill):
    skill = make_skill("asker", SKILL, SQL)
    async with make_host(skill, approver=yes) as host:
        await host.call("asker.go")
        assert await given_by(host) == ("person",)
        await host.call("asker.go")
        assert await given_by(host) == ("remembered",)


async def test_source_is_the_policy_if_the_configuration_grants_it(make_host, make_skill):
    skill = make_skill("asker", SKILL, SQL)
    async with make_host(skill, settings={"grants": {"asker": [SQL]}}, approver=yes) as host:
        await host.call("asker.go")
        assert await given_by(host) == ("policy",)


async def test_source_is_the_call_if_it_has_its_own_grant(make_host, make_skill):
    async with make_host(make_skill("asker", SKILL, SQL)) as host:
        await host.run(CallRequest("asker.go", {}, grants=(SQL,)))
        assert await given_by(host) == ("call",)


async def test_direct_op_of_the_user_has_no_source(make_host):
    async with make_host() as host:
        await host.op("sql.execute", {"sql": "CREATE TABLE t (n)", "db": "test.db"})
        (newest,) = await query(host.ledger.folder, op="sql.execute", limit=1)
    assert newest.granted_by == ()
