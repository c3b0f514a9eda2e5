"""Stored requests for approval and their answers: found by the next host, bounded, and possibly damaged."""

import time

import anyio
import pytest
from sideband import hookimpl
from sideband.approvals import Approval, ApprovalAnswered, ApprovalNeeded, ApprovalUnknown
from sideband.broker import Call
from sideband.errors import StoreConflict
from sideband.hooks import Allow
from sideband.ops import Grant, LimitExceeded, Origin

pytestmark = pytest.mark.anyio

LETTER = {"to": "ann", "text": "hello"}
WEEK, YEAR = 7 * 86_400, 365 * 86_400


async def test_request_and_answer_are_found_by_the_next_host_and_the_answer_is_used_once(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = await post.ask(host)
    async with make_host(*post.plugins) as host:
        (stored,) = await host.approvals.list()
        assert stored.request.id == identifier
        await host.approvals.answer(identifier, Approval("allow", by="Ann"))
    async with make_host(*post.plugins) as host:
        assert await host.op("mail.send", LETTER) == 1
        assert (await host.approvals.get(identifier)).state == "used"
        assert await post.ask(host) == identifier
        assert (await host.approvals.get(identifier)).state == "open"
    assert post.sent == ["hello"]


async def test_refusal_can_be_replaced_until_the_answer_is_used(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = await post.ask(host)
        await host.approvals.answer(identifier, Approval("allow"))
        await host.approvals.answer(identifier, Approval("deny"))
        await post.ask(host)
        assert post.sent == []
        await host.approvals.answer(identifier, Approval("allow"))
        await host.op("mail.send", LETTER)
        with pytest.raises(ApprovalAnswered) as caught:
            await host.approvals.answer(identifier, Approval("deny"))
        assert f"`sideband approvals deny {identifier}` revokes a grant" in caught.value.hint


async def test_unknown_request_cannot_be_answered(make_host, post):
    async with make_host(*post.plugins) as host:
        with pytest.raises(ApprovalUnknown, match="`nothing`"):
            await host.approvals.answer("nothing", Approval("allow"))


async def test_damaged_document_is_not_an_answer(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host)).request.id
        await post.rewrite(host, identifier, answer={"verdict": "yes"})
        await post.ask(host)
    assert post.sent == []


async def test_answer_of_another_request_under_its_id_is_not_an_answer(make_host, post):
    async with make_host(*post.plugins) as host:
        mine = (await post.approve(host)).request.id
        other = await post.ask(host, {**LETTER, "text": "other"})
        document = await host.store.get(f"approval/{mine}")
        await host.store.put(f"approval/{other}", document.value)
        await post.ask(host, {**LETTER, "text": "other"})
    assert post.sent == []


async def test_skill_cannot_fill_the_store_with_requests(make_host, post):
    async with make_host(*post.plugins) as host:
        call = Call("1", Grant.parse(["mail"]), "d", Origin(run="r"), anyio.current_time() + 600)
        for number in range(100):
            with pytest.raises(ApprovalNeeded):
                await host.broker.dispatch(call, "mail.send", {**LETTER, "text": str(number)})
        with pytest.raises(LimitExceeded, match="approvals") as caught:
            await host.broker.dispatch(call, "mail.send", LETTER)
        assert caught.value.code == "limit.approvals"
        assert len(await host.approvals.list()) == 100


async def test_requests_are_deleted_with_their_run(make_host, post):
    async with make_host(*post.plugins) as host:
        call = Call("1", Grant.parse(["mail"]), "d", Origin(run="r"), anyio.current_time() + 600)
        with pytest.raises(ApprovalNeeded):
            await host.broker.dispatch(call, "mail.send", LETTER)
        kept = await post.ask(host)
        await host.approvals.withdraw(run="r")
        assert [one.request.id for one in await host.approvals.list()] == [kept]


async def test_answers_that_were_used_long_ago_are_forgotten_and_open_requests_of_agents_are_not(make_host, post):
    old = time.time() - 8 * 86_400
    async with make_host(*post.plugins) as host:
        used = (await post.approve(host)).request.id
        await host.op("mail.send", LETTER)
        await post.rewrite(host, used, used=old)
        call = post.call()
        with pytest.raises(ApprovalNeeded) as caught:
            await host.broker.dispatch(call, "mail.send", LETTER)
        kept = caught.value.request.id
        document = await host.store.get(f"approval/{kept}")
        await post.rewrite(host, kept, request={**document.value["request"], "asked": old})
    async with make_host(*post.plugins) as host:
        new = await post.ask(host, {**LETTER, "text": "new"})
        assert {one.request.id for one in await host.approvals.list()} == {kept, new}


async def test_effects_without_a_question_read_and_write_no_approvals(make_host, post, hook):
    @hookimpl
    def fine(event):
        return Allow("fine")

    fine.__name__ = "op_call"
    async with make_host(post.plugins[0], hook("fine", fine), approver=post.answering(Approval("deny"))) as host:
        await host.op("mail.send", LETTER)
        assert list(await host.store.keys("approval")) == []
        assert not (host.home / "approvals.key").exists()


@pytest.mark.parametrize(
    "damage",
    [
        {"answered": "now"},
        {"used": "no"},
        {"answer": {"verdict": "yes"}},
        {"answer": {"verdict": "allow", "reason": 1}},
        {"request": {"asked": "then"}},
        {"request": {"expires": "never"}},
        {"request": {"question": 1}},
        {"request": {"kind": "all"}},
        {"request": {"effect": ["to"]}},
        {"request": {"origin": {"who": "me"}}},
        {"request": {"level": 9}},
        {"request": {"grants": {"always": [1]}}},
        {"request": {"grants": {"forever": ["mail"]}}},
    ],
)
async def test_damaged_document_affects_no_other_and_is_asked_again(make_host, post, damage):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host)).request.id
        other = await post.ask(host, {**LETTER, "text": "other"})
        await post.rewrite(host, identifier, **damage)
    async with make_host(*post.plugins) as host:
        assert [one.request.id for one in await host.approvals.list()] == [other]
        assert await post.ask(host) == identifier
        assert (await host.approvals.get(identifier)).state == "open"
    assert post.sent == []


@pytest.mark.parametrize(
    ("subject", "call", "age", "holds"),
    [
        ("skill:buyer", ("r", "0.0"), 0, True),
        ("skill:buyer", ("r", "0.0"), 3_700, False),
        ("skill:buyer", ("r", "0.1"), 0, False),
        ("skill:buyer", ("q", "0.0"), 0, False),
        ("skill:buyer", (None, "0.0"), 0, False),
        ("plugin:till", ("r", "0.0"), 0, False),
    ],
)
async def test_grant_for_one_call_holds_for_an_hour_if_that_very_call_runs_again(  # noqa: PLR0917  one row
    make_host, post, subject, call, age, holds
):
    def request(host, run, step):
        origin = Origin(session="s", run=run, step=step)
        return host.approvals.request("grant", subject, "Grant it?", {}, origin=origin, code="1")

    async with make_host(*post.plugins) as host:
        first = request(host, call[0] and "r", "0.0")
        assert await host.approvals.decide(first, None) is None
        await host.approvals.answer(first.id, Approval("allow"))
        assert (await host.approvals.decide(first, None)).allowed
        await post.rewrite(host, first.id, answered=time.time() - age)
        answer = await host.approvals.decide(request(host, *call), None)
    assert (answer is not None) == holds


async def test_document_cannot_say_that_its_answer_holds_for_more_than_an_hour(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host)).request.id
        await post.rewrite(host, identifier, answered=time.time() - 3_700, request={"expires": 1e18})
        await post.ask(host)


async def test_answer_is_not_written_into_the_document_of_another_request(make_host, post):
    approver = post.answering(Approval("allow"), Approval("deny"))
    async with make_host(*post.plugins) as host:
        mine, other = await post.ask(host), await post.ask(host, {**LETTER, "text": "other"})
        document = await host.store.get(f"approval/{other}")
        await host.store.put(f"approval/{mine}", document.value)
    async with make_host(*post.plugins, approver=approver) as host:
        await host.op("mail.send", LETTER)
    assert (len(approver.asked), post.sent) == (1, ["hello"])


@pytest.mark.parametrize(("age", "is_kept"), [(WEEK + 86_400, True), (YEAR + 86_400, False)])
async def test_denial_for_a_run_that_may_wait_for_it_is_kept_for_a_year(make_host, post, age, is_kept):
    async with make_host(*post.plugins) as host:
        denied = await post.ask(host, call=post.call())
        await host.approvals.answer(denied, Approval("deny"))
        await post.rewrite(host, denied, answered=time.time() - age)
    async with make_host(*post.plugins) as host:
        new = await post.ask(host)
        assert {one.request.id for one in await host.approvals.list()} == {new, *([denied] if is_kept else [])}


async def test_requests_are_deleted_with_their_session(make_host, post):
    async with make_host(*post.plugins) as host:
        await post.ask(host, call=post.call("s"))
        kept = await post.ask(host, call=post.call("t"))
        await host.approvals.withdraw(sessions={"s"})
        assert [one.request.id for one in await host.approvals.list()] == [kept]


async def test_run_whose_answers_were_all_used_waits_for_none(make_host, post):
    call = post.call()
    async with make_host(*post.plugins) as host:
        await post.approve(host, call=call)
        await host.approvals.resume("r")
        assert host.approvals.is_continued("r")
        await host.broker.dispatch(call, "mail.send", LETTER)
        assert not host.approvals.is_continued("r")
        await host.approvals.resume("r")
        assert not host.approvals.is_continued("r")


async def test_request_that_is_repeated_belongs_to_the_run_that_asks_now(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = await post.ask(host, call=post.call(run="r"))
        await host.approvals.withdraw(run="s")
        assert await post.ask(host, call=post.call(run="s")) == identifier
        await host.approvals.withdraw(run="r")
        assert [one.request.origin.run for one in await host.approvals.list()] == ["s"]


async def test_answer_that_gave_a_grant_stays_after_its_run_so_that_it_can_be_revoked(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host, scope="session", call=post.call())).request.id
        await host.approvals.withdraw(run="r")
        with pytest.raises(ApprovalAnswered):
            await host.approvals.answer(identifier, Approval("allow"))
        await host.approvals.answer(identifier, Approval("deny"))
        await post.ask(host, call=post.call(run="s"))


async def test_answer_that_gave_a_grant_is_kept_as_long_as_the_grant(make_host, post):
    async with make_host(*post.plugins) as host:
        granted = (await post.approve(host, scope="always")).request.id
        await post.rewrite(host, granted, answered=time.time() - 2 * YEAR, used=time.time() - 2 * YEAR)
    async with make_host(*post.plugins) as host:
        await post.ask(host, {**LETTER, "to": "bob"})
        await host.approvals.answer(granted, Approval("deny"))
        await post.ask(host)
    assert post.sent == []


async def test_one_of_two_answers_that_are_given_at_the_same_time_counts(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = await post.ask(host)
        reads, both, whole, outcomes = [], anyio.Event(), type(host.store), []

        class Slow(whole):
            """Returns the request when both have read it."""

            __slots__ = ()

            async def get(self, key):
                found = await whole.get(self, key)
                reads.append(key)
                if len(reads) == 2:
                    both.set()
                await both.wait()
                return found

        async def answer(verdict):
            try:
                outcomes.append((await host.approvals.answer(identifier, Approval(verdict))).answer.verdict)
            except StoreConflict:
                outcomes.append("conflict")

        host.store.__class__ = Slow
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer, "allow")
                tasks.start_soon(answer, "deny")
        stored = await host.approvals.get(identifier)
    assert sorted(outcomes) == sorted(["conflict", stored.answer.verdict])
