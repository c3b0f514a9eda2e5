"""Approvals of single effects: bound to exactly what was shown, used once, and recorded."""

import time
from types import SimpleNamespace

import pytest
from sideband import hookimpl
from sideband.approvals import Approval, ApprovalNeeded
from sideband.hooks import Allow, Ask, Replace
from sideband.ledger import query, verify
from sideband.ops import Level, OpDenied

pytestmark = pytest.mark.anyio

LETTER = {"to": "ann", "text": "hello"}


async def test_effect_without_an_approver_does_not_happen_and_says_how_to_approve_it(make_host, post):
    async with make_host(*post.plugins) as host:
        with pytest.raises(ApprovalNeeded, match=r"^mail\.send was denied by `careful`: it needs approval") as caught:
            await host.op("mail.send", LETTER)
        request = caught.value.request
        assert caught.value.hint.startswith(f"run `sideband approvals approve {request.id}` and repeat it, use a")
        assert (caught.value.code, caught.value.exit_code, post.sent) == ("approval.needed", 3, [])
        (record,) = await query(host.ledger.folder, op="mail.send")
    assert (record.status, record.error["code"]) == ("denied", "approval.needed")


async def test_request_shows_exactly_what_would_happen(make_host, post, hook):
    @hookimpl
    def noting(event):
        return Allow("a stranger")

    noting.__name__ = "op_call"
    async with make_host(*post.plugins, hook("notes", noting)) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        stored = await host.approvals.get(await post.ask(host, {**LETTER, "text": "canary-7f3a9c51"}))
    request = stored.request
    assert dict(request.effect) == {"to": "ann", "text": "[redacted:canary]"}
    assert (request.kind, request.subject, request.question) == ("effect", "mail.send", "Really?")
    assert (request.level, request.risk, request.expires) == (Level.RESTRICTED, "notes: a stranger", 3_600)
    assert (stored.state, stored.answer) == ("open", None)


async def test_request_contains_no_secret_that_a_guard_tells(make_host, hook, post):
    secret = "canary-7f3a9c51"

    @hookimpl
    def asking(event):
        return Ask(f"Send {secret}?")

    @hookimpl
    def noting(event):
        return Allow(f"seen {secret}")

    asking.__name__ = noting.__name__ = "op_call"
    async with make_host(post.plugins[0], hook("asks", asking), hook("notes", noting)) as host:
        host.redactor.protect(secret, "canary")
        request = (await host.approvals.get(await post.ask(host))).request
    assert (request.question, request.risk) == ("Send [redacted:canary]?", "notes: seen [redacted:canary]")


async def test_record_says_who_answered_when_and_what_was_shown(make_host, post):
    async with make_host(*post.plugins) as host:
        before = time.time()
        await post.approve(host)
        await host.op("mail.send", LETTER)
        record = (await query(host.ledger.folder, op="mail.send"))[0]
        (answered,) = await query(host.ledger.folder, op="approval.answer")
        assert (await verify(host.ledger.folder, host.store)).ok
    answer = record.decisions[-1]
    assert (answer["by"], answer["said"], answer["scope"]) == ("Ann", "approve", "once")
    assert before <= answer["time"] <= time.time()
    assert answered.params["effect"] == LETTER
    assert answered.decisions == (answer,)


@pytest.mark.parametrize(
    "other",
    [
        {"to": "ann", "text": "hellp"},
        {"to": "ann", "text": "hello "},
        {"to": "bob", "text": "hello"},
        {"to": "ann", "text": "hello", "copies": 2},
        {"to": "ann", "text": "hello", "copies": 1.0},
        {"to": "ann", "text": "hello", "copies": True},
        {"to": "ann", "text": "hello", "pin": "1"},
        {"to": "ann"},
        {"to": "ann", "text": "hello", "copies": 1},  # ops may tell a default value from an absent one
        {"to": "ann", "text": "hello", "hidden": "x"},
        {"to": "ann", "text": "hello", "enclosed": b"a"},
    ],
)
async def test_answer_is_not_for_other_parameters(make_host, post, other):
    async with make_host(*post.plugins) as host:
        await post.approve(host)
        await post.ask(host, other)
        assert post.sent == []
        assert await host.op("mail.send", LETTER) == 1


async def test_answer_is_not_for_another_secret_parameter(make_host, post):
    async with make_host(*post.plugins) as host:
        await post.approve(host, {**LETTER, "pin": "1234"})
        await post.ask(host, {**LETTER, "pin": "1235"})
        stored = [document.value for key in await host.store.keys() if (document := await host.store.get(key))]
    assert post.sent == []
    assert {one["request"]["effect"]["pin"] for one in stored if "request" in one} == {"…"}


async def test_answer_is_for_the_parameters_that_a_guard_replaced(make_host, post, hook):
    @hookimpl
    def tame(event):
        return Replace({**event.params, "text": "tame"}) if event.params.get("text") != "tame" else None

    tame.__name__ = "op_call"
    async with make_host(*post.plugins, hook("a-tamer", tame)) as host:
        stored = await post.approve(host)
        assert stored.request.effect["text"] == "tame"
        await host.op("mail.send", LETTER)
    assert post.sent == ["tame"]


@pytest.mark.parametrize("other", [{"principal": "guest"}, {"grants": ["mail:to=ann"]}])
async def test_answer_is_not_for_another_principal_or_grant(make_host, post, other):
    async with make_host(*post.plugins) as host:
        await post.approve(host)
        await post.ask(host, **other)
    assert post.sent == []


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": {"timeout": 59}},
        {"policy": {"deny": {"op.other": "not here"}}},
        {"grants": {"another": ["mail"]}},
        {"plugins": {"careful": {}}},
    ],
)
async def test_answer_does_not_survive_a_change_of_the_policy(make_host, post, settings):
    async with make_host(*post.plugins) as host:
        await post.approve(host)
    async with make_host(*post.plugins, settings=settings) as host:
        await post.ask(host)
    assert post.sent == []


async def test_answer_does_not_survive_another_guard(make_host, post, hook):
    @hookimpl
    def more(event):
        return None

    more.__name__ = "op_call"
    async with make_host(*post.plugins) as host:
        await post.approve(host)
    async with make_host(*post.plugins, hook("strict", more)) as host:
        await post.ask(host)
    assert post.sent == []


@pytest.mark.parametrize("age", [3_601, -60])
async def test_expired_answer_is_not_a_refusal_but_asked_again(make_host, post, age):
    """An answer in the future has a clock that was set back since."""
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host)).request.id
        await post.rewrite(host, identifier, answered=time.time() - age)
        assert (await host.approvals.get(identifier)).state == "expired"
        await post.ask(host)
        await host.approvals.answer(identifier, Approval("allow"))
        assert await host.op("mail.send", LETTER) == 1


async def test_answer_holds_until_the_hour_has_passed(make_host, post):
    async with make_host(*post.plugins) as host:
        identifier = (await post.approve(host)).request.id
        await post.rewrite(host, identifier, answered=time.time() - 3_500)
        assert await host.op("mail.send", LETTER) == 1


@pytest.mark.parametrize(
    "values", [{"verdict": "yes"}, {"scope": "forever"}, {"reason": 3}, {"by": None}, {"verdict": ["allow"]}]
)
def test_approval_with_an_invalid_value_names_it(values):
    with pytest.raises((TypeError, ValueError), match=f"`{next(iter(values))}`"):
        Approval(**{"verdict": "allow", **values})


@pytest.mark.parametrize("answer", [True, "allow", None])
async def test_answer_that_is_not_an_approval_is_refused(make_host, post, answer):
    async with make_host(*post.plugins) as host:
        identifier = await post.ask(host)
        with pytest.raises(TypeError, match="expected an Approval"):
            await host.approvals.answer(identifier, answer)
        assert (await host.approvals.get(identifier)).state == "open"


async def test_answer_is_found_for_the_same_set_in_another_order(make_host, post):
    names = [f"name {number}" for number in range(20)]
    async with make_host(*post.plugins) as host:
        await post.approve(host, {**LETTER, "readers": names})
        await host.op("mail.send", {**LETTER, "readers": names[::-1]})
    assert post.sent == ["hello"]


async def test_effect_with_an_empty_value_in_its_scope_is_approved_only_once(make_host, post):
    async with make_host(*post.plugins) as host:
        stored = await post.approve(host, {**LETTER, "to": ""})
        await host.op("mail.send", {**LETTER, "to": ""})
    assert (dict(stored.request.grants), post.sent) == ({}, ["hello"])


async def test_secret_in_an_answer_is_neither_stored_nor_recorded_nor_shown(make_host, post, ledger_lines):
    secret = "canary-7f3a9c51"
    async with make_host(
        *post.plugins, approver=post.answering(Approval("deny", reason=f"not {secret}", by=secret))
    ) as host:
        host.redactor.protect(secret, "canary")
        with pytest.raises(OpDenied, match=r"not approved .not .redacted:canary") as caught:
            await host.op("mail.send", LETTER)
        stored = await host.approvals.list()
    assert "canary" in repr(stored)
    assert secret not in f"{stored} {ledger_lines()} {caught.value.as_dict()}"


async def test_preview_is_shown_and_recorded(make_host, post):
    async with make_host(*post.plugins) as host:
        stored = await post.approve(host)
        await host.op("mail.send", LETTER)
        record = (await query(host.ledger.folder, op="mail.send"))[0]
    assert stored.request.preview == "to ann"
    assert record.decisions[-1]["note"] == "shown: to ann"


async def test_continued_run_needs_no_approval_for_what_it_did_not_wait_for(make_host, hook, post):
    @hookimpl
    def fine(event):
        return Allow("fine")

    fine.__name__ = "op_call"
    async with make_host(*post.plugins) as host:
        await post.ask(host, call=post.call())
    async with make_host(post.plugins[0], hook("careful", fine)) as host:
        await host.approvals.resume("r")
        await host.broker.dispatch(post.call(), "mail.send", {**LETTER, "text": "other"})
        await post.ask(host, call=post.call())
    assert (post.sent, post.previewed) == (["other"], ["hello", "hello"])


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_answer_about_a_grant_is_recorded_also_if_it_is_for_one_call(make_host, post, verdict):
    async with make_host() as host:
        await host.approvals.decide(post.grant_request(host), post.answering(Approval(verdict, by="Ann")))
        (record,) = await query(host.ledger.folder, op="approval.answer")
    assert (record.decisions[0]["by"], record.params["subject"]) == ("Ann", "skill:reader")
    assert record.status == ("done" if verdict == "allow" else "denied")


async def test_failure_of_the_approver_is_not_a_no_for_the_run(make_host, post):
    async def approver(request):
        if not post.previewed[1:]:
            raise ValueError("no connection")
        return Approval("allow")

    async with make_host(*post.plugins, approver=approver) as host:
        with pytest.raises(OpDenied, match="no connection"):
            await host.broker.dispatch(post.call(), "mail.send", LETTER)
        await host.broker.dispatch(post.call(), "mail.send", LETTER)
    assert post.sent == ["hello"]


@pytest.mark.parametrize(
    "answer", [True, "allow", None, {"verdict": "allow"}, SimpleNamespace(allowed=True, scope="once", reason="", by="")]
)
async def test_approver_that_returns_no_approval_approves_nothing(make_host, post, answer):
    async with make_host(*post.plugins, approver=post.answering(answer)) as host:
        with pytest.raises(OpDenied, match="must return an Approval"):
            await host.op("mail.send", LETTER)
        assert [one.state for one in await host.approvals.list()] == ["open"]
    assert post.sent == []


async def test_no_about_a_grant_holds_for_all_calls_of_the_run(make_host, post):
    approver = post.answering(Approval("deny"))
    async with make_host() as host:
        for tool, run in (("look", "r"), ("read", "r"), ("read", "s")):
            request = post.grant_request(host, tool=tool, run=run)
            assert not (await host.approvals.decide(request, approver, about="reader")).allowed
    assert [one.origin.run for one in approver.asked] == ["r", "s"]


@pytest.mark.parametrize("scope", ["once", "session", "always"])
async def test_answer_is_not_for_another_version_of_the_skill_that_asked(make_host, post, scope):
    changed = post.call()
    changed.code = "another digest"
    async with make_host(*post.plugins) as host:
        await post.approve(host, scope=scope, call=post.call())
        await post.ask(host, call=changed)
        await host.broker.dispatch(post.call(), "mail.send", LETTER)
    assert post.sent == ["hello"]
