"""Approvals for a session and for all sessions: they give exactly the grant that was shown, until it is revoked."""

import pytest
from attrs import evolve
from pydantic import BaseModel
from sideband.approvals import Approval, ApprovalNeeded, ApprovalRefused
from sideband.calls._grants import RememberedGrants
from sideband.ledger import query
from sideband.ops import Level, OpContext, OpDenied, op

pytestmark = pytest.mark.anyio

LETTER = {"to": "ann", "text": "hello"}


class Empty(BaseModel):
    """No parameters."""


async def test_capability_of_a_lasting_answer_is_shown_and_admits_nothing_else(make_host, post):
    async with make_host(*post.plugins) as host:
        stored = await post.approve(host, scope="always")
        assert dict(stored.request.grants) == {"always": ("mail:to=ann",)}
    async with make_host(*post.plugins, settings={"policy": {"timeout": 59}}) as host:
        assert await host.op("mail.send", LETTER) == 1
        assert await host.op("mail.send", {**LETTER, "text": "again"}) == 2
        await post.ask(host, {**LETTER, "to": "bob"})
        await post.ask(host, principal="guest")
        record = (await query(host.ledger.folder, op="mail.send", status="done"))[0]
        (answered,) = await query(host.ledger.folder, op="approval.answer")
    assert post.sent == ["hello", "again"]
    assert (record.decisions[-1]["by"], record.decisions[-1]["scope"]) == ("Ann", "always")
    assert answered.decisions[0]["scope"] == "always"


async def test_lasting_answer_is_only_given_if_its_grant_is_shown(make_host, post, family, hook):
    async with make_host(*post.plugins) as host:
        with pytest.raises(ApprovalRefused, match="does not offer the scope `session`"):
            await post.approve(host, scope="session")
        with pytest.raises(ApprovalNeeded) as caught:
            await host.op("mail.look", LETTER)
        assert dict(caught.value.request.grants) == {}
        with pytest.raises(ApprovalRefused):
            await host.approvals.answer(caught.value.request.id, Approval("allow", "always"))


async def test_approver_cannot_answer_with_a_scope_that_was_not_offered(make_host, post):
    async with make_host(*post.plugins, approver=post.answering(Approval("allow", "session"))) as host:
        with pytest.raises(OpDenied, match="which the request does not offer"):
            await host.op("mail.send", LETTER)
        assert (await host.approvals.list())[0].state == "open"
    assert post.sent == []


@pytest.mark.parametrize(("scope", "other"), [("once", "t"), ("session", "t"), ("always", None)])
async def test_answer_is_for_its_session_unless_it_is_for_all(make_host, post, scope, other):
    async with make_host(*post.plugins) as host:
        with pytest.raises(ApprovalNeeded) as caught:
            await host.broker.dispatch(post.call("s"), "mail.send", LETTER)
        request = caught.value.request
        assert dict(request.grants) == dict.fromkeys(("session", "always"), ("mail:to=ann",))
        await host.approvals.answer(request.id, Approval("allow", scope))
        if other is not None:
            with pytest.raises(ApprovalNeeded):
                await host.broker.dispatch(post.call("t"), "mail.send", LETTER)
        await host.broker.dispatch(post.call("s"), "mail.send", LETTER)
        if other is None:
            await host.broker.dispatch(post.call("t"), "mail.send", LETTER)
    assert len(post.sent) == (1 if other else 2)


async def test_denial_of_a_lasting_answer_revokes_its_grant(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host, scope="always")).request.id
        await host.op("mail.send", LETTER)
        assert (await host.approvals.get(identifier)).state == "granted"
        await host.approvals.answer(identifier, Approval("deny", by="Ann"))
    async with make_host(*post.plugins) as host:
        await post.ask(host)
        records = await query(host.ledger.folder, op="approval.answer")
    assert post.sent == ["hello"]
    assert [one.status for one in records] == ["denied", "done"]


async def test_answer_is_not_shared_with_effects_that_come_later(make_host, post):
    approver = post.answering(Approval("deny"), Approval("allow", "always"), Approval("deny"))
    async with make_host(*post.plugins, approver=approver) as host:
        with pytest.raises(OpDenied):
            await host.op("mail.send", LETTER)
        await host.op("mail.send", LETTER)
        await host.approvals.answer(approver.asked[0].id, Approval("deny"))  # revokes the grant
        with pytest.raises(OpDenied):
            await host.op("mail.send", LETTER)
    assert (len(approver.asked), post.sent) == (3, ["hello"])


@pytest.mark.parametrize(("distribution", "asked"), [("office", 1), ("rival", 2)])
async def test_lasting_answer_about_an_effect_of_a_plugin_is_not_for_another_of_its_name(
    make_host, post, family, distribution, asked
):
    @op("office.send", level=Level.SAFE)
    async def send(params: Empty, ctx: OpContext) -> int:
        return await ctx.dispatch("mail.send", LETTER)

    office = family("office", send)
    approver = post.answering(Approval("allow", "always"), Approval("allow"))
    for one in ("office", distribution):
        plugins = (*post.plugins, evolve(office, distribution=one))
        async with make_host(*plugins, approver=approver) as host:
            await host.op("office.send", {})
    assert (len(approver.asked), len(post.sent)) == (asked, 2)


async def test_each_lasting_answer_counts_beside_the_others_until_it_is_revoked(make_host, post):
    ann, bob = {"to": "ann", "text": "a"}, {"to": "bob", "text": "b"}
    async with make_host(*post.plugins) as host:
        first = (await post.approve(host, ann, scope="always")).request.id
        await post.approve(host, bob, scope="always")
        for one in (ann, bob):
            await host.op("mail.send", one)
        await host.approvals.answer(first, Approval("deny"))
        await host.op("mail.send", bob)
        await post.ask(host, ann)
    assert post.sent == ["a", "b", "b"]


@pytest.mark.parametrize("to", ["*", "a*", "ann|bob", "ann,text=x", "%61nn", "ann\n", "\x1b[2J", "\u202e", " "])
async def test_lasting_answer_about_an_unusual_value_is_for_this_value(make_host, post, to):
    async with make_host(*post.plugins) as host:
        stored = await post.approve(host, {**LETTER, "to": to}, scope="always")
        assert all(text.isprintable() and " " not in text for text in stored.request.grants["always"])
        await host.op("mail.send", {**LETTER, "to": to})
        for other in ("ann", "bob", "a", "x"):
            await post.ask(host, {**LETTER, "to": other})
    assert post.sent == ["hello"]


@pytest.mark.parametrize("name", ["canary-7f3a9c51", "n" * 3_000, "ü" * 1_000])
async def test_lasting_answer_is_not_offered_if_its_grant_cannot_be_shown_exactly(make_host, post, name):
    async with make_host(*post.plugins) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        stored = await host.approvals.get(await post.ask(host, {**LETTER, "to": name}))
    assert dict(stored.request.grants) == {}


async def test_grant_that_is_revoked_ends_before_the_answer_is_stored(make_host, post, monkeypatch):
    """If the host is killed between, the user sees that the answer still has to be revoked."""
    async with make_host() as host:
        request = post.grant_request(host)
        await host.approvals.decide(request, post.answering(Approval("allow", "always")))
        remembered = RememberedGrants(host.home)
        assert remembered.get("d1")

        def fail(*_, **__):
            raise OSError("full")

        with monkeypatch.context() as patch:
            patch.setattr(type(host.store), "transaction", fail)
            with pytest.raises(OSError, match="full"):
                await host.approvals.answer(request.id, Approval("deny"))
        assert not remembered.get("d1")
        assert (await host.approvals.get(request.id)).state == "granted"
        assert (await host.approvals.answer(request.id, Approval("deny"))).state == "denied"


async def test_lasting_answer_of_an_approver_has_a_record_of_its_own(make_host, post):
    async with make_host(*post.plugins, approver=post.answering(Approval("allow", "always", by="Ann"))) as host:
        await host.op("mail.send", LETTER)
        (record,) = await query(host.ledger.folder, op="approval.answer")
    assert (record.decisions[0]["by"], record.decisions[0]["scope"]) == ("Ann", "always")
