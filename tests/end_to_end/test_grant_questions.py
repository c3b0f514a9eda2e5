"""Questions about grants: asked once, answered for one run, and remembered for no more than the user saw."""

import anyio
import pytest
from sideband import CallRequest, Host
from sideband.approvals import Approval
from sideband.ops import Origin
from sideband.workers import GrantRequired

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

SQL = "sql:path=test.db"
CODE = """
from sideband.skill import tool

@tool
async def look() -> int:
    return 1

@tool
async def other() -> int:
    return 2
"""


class Asker:
    """Answers questions, and keeps them."""

    def __init__(self, *answers):
        self.asked = []
        self._answers = list(answers)
        self.was_asked = anyio.Event()
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def __call__(self, request):
        self.asked.append((request.effect["tool"], " ".join(request.effect["capabilities"])))
        self.was_asked.set()
        await self.may_answer.wait()
        return Approval("allow", "always") if self._answers.pop(0) else Approval("deny")


@pytest.fixture
def make_host(tmp_path, make_skill):
    skill = make_skill("modest", CODE, SQL)

    def make(asker, **options):
        return Host(home=tmp_path / "home", skill_dirs=[skill], approver=asker, **options)

    return make


async def outcomes_of(host, *runs, tool="modest.look"):
    """Make a call in each of these runs, all at the same time, and return the outputs and errors."""
    found = [None] * len(runs)

    async def call(number, run):
        try:
            found[number] = (await host.run(CallRequest(tool, origin=Origin(run=run)))).output
        except GrantRequired as error:
            found[number] = error

    async with anyio.create_task_group() as tasks:
        for number, run in enumerate(runs):
            tasks.start_soon(call, number, run)
    return found


@BOTH_BACKENDS
@pytest.mark.parametrize("runs", [("a", "a", "a"), ("a", "b", "c")])
async def test_parallel_calls_share_one_question(make_host, runs):
    async with make_host(yes := Asker(True)) as host:
        assert await outcomes_of(host, *runs) == [1, 1, 1]
    assert yes.asked == [("modest.look", SQL)]


@BOTH_BACKENDS
async def test_parallel_calls_share_a_no(make_host):
    no = Asker(False)
    no.may_answer = anyio.Event()
    async with make_host(no) as host, anyio.create_task_group() as tasks:
        await host.run(CallRequest("modest.look", grants=()))  # so that the calls ask without waiting for anything else
        found = []

        async def call():
            found.extend(await outcomes_of(host, "a", "b"))

        tasks.start_soon(call)
        await no.was_asked.wait()
        await anyio.wait_all_tasks_blocked()
        no.may_answer.set()
    assert [type(one) for one in found] == [GrantRequired, GrantRequired]
    assert len(no.asked) == 1


async def test_no_holds_for_the_run_and_for_every_tool_of_the_skill(make_host):
    async with make_host(no := Asker(False, False)) as host:
        for tool in ("modest.look", "modest.other", "modest.look"):
            (refused,) = await outcomes_of(host, "a", tool=tool)
            assert refused.refused
            assert "the user refused to grant" in refused.message
        assert len(no.asked) == 1
        await outcomes_of(host, "b")
        assert len(no.asked) == 2


async def test_call_without_a_user_is_not_called_refused_by_the_user(make_host):
    async with make_host(None) as host:
        (missing,) = await outcomes_of(host, "a")
    assert not missing.refused
    assert "it was not granted" in missing.message


@BOTH_BACKENDS
async def test_question_of_a_cancelled_call_is_asked_for_the_next_one(make_host):
    asker = Asker(True)
    asker.may_answer = anyio.Event()
    async with make_host(asker) as host, anyio.create_task_group() as tasks:
        await host.run(CallRequest("modest.look", grants=()))  # so that the calls ask without waiting for anything else
        scope = anyio.CancelScope()

        async def cancelled():
            with scope:
                await outcomes_of(host, "a")

        async def waiting():
            assert await outcomes_of(host, "b") == [1]

        tasks.start_soon(cancelled)
        await asker.was_asked.wait()
        tasks.start_soon(waiting)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        asker.may_answer.set()
    assert len(asker.asked) == 2


async def test_only_what_the_user_saw_is_remembered(make_host, make_skill, tmp_path):
    skill = make_skill("both", CODE, f"{SQL} files:path=a")
    for settings, grants in ({"grants": {"both": [SQL]}}, {}), ({}, {"both": [SQL]}):
        home = tmp_path / f"home-{bool(grants)}"
        options = {"home": home, "skill_dirs": [skill], "approver": (yes := Asker(True))}
        async with Host(**options, settings=settings, grants=grants) as host:
            assert await host.call("both.look") == 1
        assert yes.asked == [("both.look", "files:hidden=no,mode=read,path=a,place=home")]
        async with Host(home=home, skill_dirs=[skill]) as host:
            with pytest.raises(GrantRequired) as caught:
                await host.call("both.look")
        assert caught.value.missing == (SQL,)


async def test_added_grant_is_held_beside_the_requested_ones_and_not_stored(make_host):
    grants = {"modest": ["files:path=a", SQL]}
    async with make_host(None, grants=grants) as host:
        result = await host.run(CallRequest("modest.look"))
        assert result.grant == ("files:hidden=no,mode=read,path=a,place=home", SQL)
    async with make_host(None) as host:
        with pytest.raises(GrantRequired):
            await host.call("modest.look")


async def test_added_grant_is_for_one_skill_only(make_host):
    async with make_host(None, grants={"other": [SQL]}) as host:
        with pytest.raises(GrantRequired):
            await host.call("modest.look")


@pytest.mark.parametrize(
    ("capability", "problem"),
    [("sql:mode=foo", "valid values: read, write"), ("nope:a=b", "unknown op family"), ("sql:pth=x", "unknown field")],
)
async def test_invalid_added_grant_is_refused_when_the_host_opens(make_host, capability, problem):
    with pytest.raises(ValueError, match=problem):
        async with make_host(None, grants={"modest": [capability]}):
            pass


async def test_added_grant_of_a_denied_family_is_refused(make_host):
    settings = {"policy": {"deny": {"op.sql": "not here"}}}
    with pytest.raises(Exception, match="not here"):
        async with make_host(None, grants={"modest": [SQL]}, settings=settings):
            pass


async def test_grant_that_is_revoked_is_asked_again(make_host):
    async with make_host(Asker(True)) as host:
        assert await host.call("modest.look") == 1
        (granted,) = await host.approvals.list()
        assert granted.state == "granted"
        await host.approvals.answer(granted.request.id, Approval("deny"))
    async with make_host(None) as host:
        with pytest.raises(GrantRequired):
            await host.call("modest.look")


async def test_grant_for_one_call_is_for_exactly_that_call(make_host):
    async with make_host(None) as host:
        with pytest.raises(GrantRequired) as caught:
            await host.call("modest.look")
        await host.approvals.answer(caught.value.needed.request.id, Approval("allow"))
        with pytest.raises(GrantRequired):
            await host.call("modest.other")
        assert await host.call("modest.look") == 1
        with pytest.raises(GrantRequired):
            await host.call("modest.look")


async def test_grant_for_one_call_is_not_for_other_arguments(tmp_path, make_skill):
    skill = make_skill(
        "echo", "from sideband.skill import tool\n@tool\nasync def say(n: int) -> int:\n    return n\n", SQL
    )
    async with Host(home=tmp_path / "home", skill_dirs=[skill]) as host:
        with pytest.raises(GrantRequired) as caught:
            await host.call("echo.say", n=1)
        await host.approvals.answer(caught.value.needed.request.id, Approval("allow"))
        with pytest.raises(GrantRequired):
            await host.call("echo.say", n=2)
        assert await host.call("echo.say", n=1) == 1
