"""Approvals of effects: stored, asked once, bound to exactly what was shown, and used once."""

import time
from contextvars import ContextVar

import anyio
import anyio.lowlevel
import attrs
import pytest
from pydantic import BaseModel, Field
from sideband import hookimpl
from sideband.approvals import (
    Approval,
    ApprovalAnswered,
    ApprovalNeeded,
    ApprovalRefused,
    ApprovalUnknown,
)
from sideband.broker import Call
from sideband.hooks import Allow, Ask, Replace
from sideband.ledger import query, verify
from sideband.ops import Grant, Level, LimitExceeded, OpContext, OpDenied, Origin, Scope, op

pytestmark = pytest.mark.anyio

BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
is_late = ContextVar("is_late", default=False)
LETTER = {"to": "ann", "text": "hello"}


class Letter(BaseModel):
    to: str
    text: str = ""
    copies: int | float | bool = 1
    pin: str = Field(default="", repr=False)


@attrs.frozen
class MailScope(Scope, family="mail"):
    to: str | None = None


@hookimpl
def op_call(event):
    return Ask("Really?") if event.op.startswith("mail.") else None


@pytest.fixture
def sent():
    return []


@pytest.fixture
def mail(family, hook, sent):
    """Return the plugins: letters, and a guard that asks about each."""

    @op(
        "mail.send",
        requires="mail",
        scope=lambda params: MailScope(to=params.to),
        level=Level.RESTRICTED,
        record=["to"],
    )
    async def send(params: Letter, ctx: OpContext) -> int:
        sent.append(params.text)
        return len(sent)

    @op("mail.look", level=Level.SAFE)
    async def look(params: Letter, ctx: OpContext) -> int:
        return len(sent)

    return family("mail", send, look, scope=MailScope), hook("careful", op_call)


def answering(*answers):
    """Return an approver that gives these answers, the last one again and again, and keeps the requests."""
    left = list(answers)

    async def approver(request):
        approver.asked.append(request)
        await anyio.lowlevel.checkpoint()
        return left.pop(0) if len(left) > 1 else left[0]

    approver.asked = []
    return approver


async def ask(host, params=LETTER, **options):
    """Dispatch an effect without an approver, and return the id of its request."""
    with pytest.raises(ApprovalNeeded) as caught:
        await host.op("mail.send", params, **options)
    return caught.value.request.id


async def approve(host, params=LETTER, scope="once", **options):
    """Dispatch an effect without an approver, and approve it."""
    return await host.approvals.answer(await ask(host, params, **options), Approval("allow", scope, by="Ann"))


async def rewrite(host, identifier, **changes):
    """Change the stored document of a request."""
    document = await host.store.get(f"approval/{identifier}")
    await host.store.put(f"approval/{identifier}", {**document.value, **changes})


async def test_effect_without_an_approver_does_not_happen_and_says_how_to_approve_it(make_host, mail, sent):
    async with make_host(*mail) as host:
        with pytest.raises(ApprovalNeeded, match=r"^mail\.send was denied by `careful`: it needs approval") as caught:
            await host.op("mail.send", LETTER)
        request = caught.value.request
        assert caught.value.hint.startswith(f"run `sideband approvals approve {request.id}` and repeat it, use a")
        assert (caught.value.code, caught.value.exit_code, sent) == ("approval.needed", 3, [])
        (record,) = await query(host.ledger.folder, op="mail.send")
    assert (record.status, record.error["code"]) == ("denied", "approval.needed")


async def test_request_shows_exactly_what_would_happen(make_host, mail, hook):
    @hookimpl
    def noting(event):
        return Allow("a stranger")

    noting.__name__ = "op_call"
    async with make_host(*mail, hook("notes", noting)) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        stored = await host.approvals.get(await ask(host, {**LETTER, "text": "canary-7f3a9c51"}))
    request = stored.request
    assert dict(request.effect) == {"to": "ann", "text": "[redacted:canary]"}
    assert (request.kind, request.subject, request.question) == ("effect", "mail.send", "Really?")
    assert (request.level, request.risk, request.expires) == (Level.RESTRICTED, "notes: a stranger", 3_600)
    assert (stored.state, stored.answer) == ("open", None)


async def test_request_and_answer_are_found_by_the_next_host_and_the_answer_is_used_once(make_host, mail, sent):
    async with make_host(*mail) as host:
        identifier = await ask(host)
    async with make_host(*mail) as host:
        (stored,) = await host.approvals.list()
        assert stored.request.id == identifier
        await host.approvals.answer(identifier, Approval("allow", by="Ann"))
    async with make_host(*mail) as host:
        assert await host.op("mail.send", LETTER) == 1
        assert (await host.approvals.get(identifier)).state == "used"
        assert await ask(host) == identifier
        assert (await host.approvals.get(identifier)).state == "open"
    assert sent == ["hello"]


async def test_record_says_who_answered_when_and_what_was_shown(make_host, mail):
    async with make_host(*mail) as host:
        before = time.time()
        await approve(host)
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
    ],
)
async def test_answer_is_not_for_other_parameters(make_host, mail, sent, other):
    async with make_host(*mail) as host:
        await approve(host)
        await ask(host, other)
        assert sent == []
        assert await host.op("mail.send", LETTER) == 1


async def test_answer_is_not_for_another_secret_parameter(make_host, mail, sent):
    async with make_host(*mail) as host:
        await approve(host, {**LETTER, "pin": "1234"})
        await ask(host, {**LETTER, "pin": "1235"})
        stored = [document.value for key in await host.store.keys() if (document := await host.store.get(key))]
    assert sent == []
    assert {one["request"]["effect"]["pin"] for one in stored if "request" in one} == {"…"}


async def test_answer_is_for_the_parameters_that_a_guard_replaced(make_host, mail, hook, sent):
    @hookimpl
    def tame(event):
        return Replace({**event.params, "text": "tame"}) if event.params.get("text") != "tame" else None

    tame.__name__ = "op_call"
    async with make_host(*mail, hook("a-tamer", tame)) as host:
        stored = await approve(host)
        assert stored.request.effect["text"] == "tame"
        await host.op("mail.send", LETTER)
    assert sent == ["tame"]


@pytest.mark.parametrize("other", [{"principal": "guest"}, {"grants": ["mail:to=ann"]}])
async def test_answer_is_not_for_another_principal_or_grant(make_host, mail, sent, other):
    async with make_host(*mail) as host:
        await approve(host)
        await ask(host, **other)
    assert sent == []


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": {"timeout": 59}},
        {"policy": {"deny": {"op.other": "not here"}}},
        {"grants": {"another": ["mail"]}},
        {"plugins": {"careful": {}}},
    ],
)
async def test_answer_does_not_survive_a_change_of_the_policy(make_host, mail, sent, settings):
    async with make_host(*mail) as host:
        await approve(host)
    async with make_host(*mail, settings=settings) as host:
        await ask(host)
    assert sent == []


async def test_answer_does_not_survive_another_guard(make_host, mail, hook, sent):
    @hookimpl
    def more(event):
        return None

    more.__name__ = "op_call"
    async with make_host(*mail) as host:
        await approve(host)
    async with make_host(*mail, hook("strict", more)) as host:
        await ask(host)
    assert sent == []


@pytest.mark.parametrize("age", [3_601, -60])
async def test_expired_answer_is_not_a_refusal_but_asked_again(make_host, mail, sent, age):
    """An answer in the future has a clock that was set back since."""
    async with make_host(*mail) as host:
        identifier = (await approve(host)).request.id
        await rewrite(host, identifier, answered=time.time() - age)
        assert (await host.approvals.get(identifier)).state == "expired"
        await ask(host)
        await host.approvals.answer(identifier, Approval("allow"))
        assert await host.op("mail.send", LETTER) == 1


async def test_answer_holds_until_the_hour_has_passed(make_host, mail):
    async with make_host(*mail) as host:
        identifier = (await approve(host)).request.id
        await rewrite(host, identifier, answered=time.time() - 3_500)
        assert await host.op("mail.send", LETTER) == 1


async def test_refusal_can_be_replaced_until_the_answer_is_used(make_host, mail, sent):
    async with make_host(*mail) as host:
        identifier = await ask(host)
        await host.approvals.answer(identifier, Approval("allow"))
        await host.approvals.answer(identifier, Approval("deny"))
        await ask(host)
        assert sent == []
        await host.approvals.answer(identifier, Approval("allow"))
        await host.op("mail.send", LETTER)
        with pytest.raises(ApprovalAnswered) as caught:
            await host.approvals.answer(identifier, Approval("deny"))
        assert f"`sideband approvals deny {identifier}` revokes a grant" in caught.value.hint


@pytest.mark.parametrize(
    "values", [{"verdict": "yes"}, {"scope": "forever"}, {"reason": 3}, {"by": None}, {"verdict": ["allow"]}]
)
def test_approval_with_an_invalid_value_names_it(values):
    with pytest.raises((TypeError, ValueError), match=f"`{next(iter(values))}`"):
        Approval(**{"verdict": "allow", **values})


@pytest.mark.parametrize("answer", [True, "allow", None])
async def test_answer_that_is_no_approval_is_refused(make_host, mail, answer):
    async with make_host(*mail) as host:
        identifier = await ask(host)
        with pytest.raises(TypeError, match="expected an Approval"):
            await host.approvals.answer(identifier, answer)
        assert (await host.approvals.get(identifier)).state == "open"


async def test_unknown_request_cannot_be_answered(make_host, mail):
    async with make_host(*mail) as host:
        with pytest.raises(ApprovalUnknown, match="`nothing`"):
            await host.approvals.answer("nothing", Approval("allow"))


async def test_damaged_document_is_not_an_answer(make_host, mail, sent):
    async with make_host(*mail) as host:
        identifier = (await approve(host)).request.id
        await rewrite(host, identifier, answer={"verdict": "yes"})
        await ask(host)
    assert sent == []


async def test_answer_of_another_request_under_its_id_is_not_an_answer(make_host, mail, sent):
    async with make_host(*mail) as host:
        mine = (await approve(host)).request.id
        other = await ask(host, {**LETTER, "text": "other"})
        document = await host.store.get(f"approval/{mine}")
        await host.store.put(f"approval/{other}", document.value)
        await ask(host, {**LETTER, "text": "other"})
    assert sent == []


@pytest.mark.parametrize("values", [("yes", "once"), (True, "once"), ("allow", "forever")])
def test_answer_has_a_known_verdict_and_scope(values):
    with pytest.raises(ValueError, match="expected `"):
        Approval(*values)


async def test_capability_of_a_lasting_answer_is_shown_and_admits_nothing_else(make_host, mail, sent):
    async with make_host(*mail) as host:
        stored = await approve(host, scope="always")
        assert dict(stored.request.grants) == {"always": ("mail:to=ann",)}
    async with make_host(*mail, settings={"policy": {"timeout": 59}}) as host:
        assert await host.op("mail.send", LETTER) == 1
        assert await host.op("mail.send", {**LETTER, "text": "again"}) == 2
        await ask(host, {**LETTER, "to": "bob"})
        await ask(host, principal="guest")
        record = (await query(host.ledger.folder, op="mail.send", status="done"))[0]
        (answered,) = await query(host.ledger.folder, op="approval.answer")
    assert sent == ["hello", "again"]
    assert (record.decisions[-1]["by"], record.decisions[-1]["scope"]) == ("Ann", "always")
    assert answered.decisions[0]["scope"] == "always"


async def test_lasting_answer_is_only_given_if_its_grant_is_shown(make_host, mail, family, hook):
    async with make_host(*mail) as host:
        with pytest.raises(ApprovalRefused, match="does not offer the scope `session`"):
            await approve(host, scope="session")
        with pytest.raises(ApprovalNeeded) as caught:
            await host.op("mail.look", LETTER)
        assert dict(caught.value.request.grants) == {}
        with pytest.raises(ApprovalRefused):
            await host.approvals.answer(caught.value.request.id, Approval("allow", "always"))


async def test_approver_cannot_answer_with_a_scope_that_was_not_offered(make_host, mail, sent):
    async with make_host(*mail, approver=answering(Approval("allow", "session"))) as host:
        with pytest.raises(OpDenied, match="which the request does not offer"):
            await host.op("mail.send", LETTER)
        assert (await host.approvals.list())[0].state == "open"
    assert sent == []


@BOTH_BACKENDS
async def test_equal_effects_in_parallel_are_asked_about_once_if_the_answer_lasts(make_host, mail, sent):
    approver = answering(Approval("allow", "always"))
    async with make_host(*mail, approver=approver) as host, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(host.op, "mail.send", LETTER)
    assert (len(approver.asked), len(sent)) == (1, 5)


@BOTH_BACKENDS
async def test_equal_effects_in_parallel_are_never_admitted_by_the_same_answer(make_host, mail, sent):
    open_questions = []

    async def approver(request):
        open_questions.append(request.id)
        assert len(open_questions) == 1
        await anyio.lowlevel.checkpoint()
        open_questions.clear()
        asked.append(request)
        return Approval("allow" if len(asked) < 3 else "deny")

    asked, denied = [], []
    async with make_host(*mail, approver=approver) as host:

        async def send():
            try:
                await host.op("mail.send", LETTER)
            except OpDenied:
                denied.append(1)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
    assert (len(asked), len(sent), len(denied)) == (3, 2, 3)


@BOTH_BACKENDS
@pytest.mark.parametrize("answer", [Approval("allow", "always"), Approval("deny")])
async def test_answer_that_is_given_while_an_equal_effect_looks_for_one_is_for_both(make_host, mail, sent, answer):
    approver = answering(answer)
    async with make_host(*mail, approver=approver) as host:
        reached, answered, outcomes = anyio.Event(), anyio.Event(), []
        whole = type(host.store)

        class Slow(whole):
            """Reads the request of the late effect before the answer, and returns it after that."""

            __slots__ = ()

            async def get(self, key):
                found = await whole.get(self, key)
                if is_late.get() and key.startswith("approval/") and not reached.is_set():
                    reached.set()
                    await answered.wait()
                return found

        host.store.__class__ = Slow

        async def send(late):
            is_late.set(late)
            try:
                await host.op("mail.send", LETTER)
            except OpDenied:
                outcomes.append("denied")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send, True)
            await reached.wait()
            await send(False)
            answered.set()
    assert len(approver.asked) == 1
    assert (len(sent), len(outcomes)) == ((2, 0) if answer.allowed else (0, 2))


@BOTH_BACKENDS
async def test_two_hosts_on_one_home_use_an_answer_exactly_once(make_host, mail, sent):
    async with make_host(*mail) as one, make_host(*mail) as other:
        for number in range(10):
            letter = {**LETTER, "text": str(number)}
            await approve(one, letter)
            missing = []

            async def send(host, letter=letter, missing=missing):
                try:
                    await host.op("mail.send", letter)
                except ApprovalNeeded as error:
                    missing.append(error)

            async with anyio.create_task_group() as tasks:
                for host in (one, other, one, other):
                    tasks.start_soon(send, host)
            assert len(missing) == 3
    assert sent == [str(number) for number in range(10)]


@BOTH_BACKENDS
async def test_answer_to_a_cancelled_caller_is_asked_again(make_host, mail, sent):
    asked = anyio.Event()

    async def approver(request):
        if not asked.is_set():
            asked.set()
            await anyio.sleep_forever()
        return Approval("allow")

    async with make_host(*mail, approver=approver) as host:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.op, "mail.send", LETTER)
                await asked.wait()
                scope.cancel()
        assert await host.op("mail.send", LETTER) == 1


async def test_skill_cannot_fill_the_store_with_requests(make_host, mail):
    async with make_host(*mail) as host:
        call = Call("1", Grant.parse(["mail"]), "d", Origin(run="r"), anyio.current_time() + 600)
        for number in range(100):
            with pytest.raises(ApprovalNeeded):
                await host.broker.dispatch(call, "mail.send", {**LETTER, "text": str(number)})
        with pytest.raises(LimitExceeded, match="approvals") as caught:
            await host.broker.dispatch(call, "mail.send", LETTER)
        assert caught.value.code == "limit.approvals"
        assert len(await host.approvals.list()) == 100


@pytest.mark.parametrize(("scope", "other"), [("once", "t"), ("session", "t"), ("always", None)])
async def test_answer_is_for_its_session_unless_it_is_for_all(make_host, mail, sent, scope, other):
    def call(session):
        origin = Origin(session=session, run="r")
        return Call("1", Grant.parse(["mail"]), "d", origin, anyio.current_time() + 600)

    async with make_host(*mail) as host:
        with pytest.raises(ApprovalNeeded) as caught:
            await host.broker.dispatch(call("s"), "mail.send", LETTER)
        request = caught.value.request
        assert dict(request.grants) == dict.fromkeys(("session", "always"), ("mail:to=ann",))
        await host.approvals.answer(request.id, Approval("allow", scope))
        if other is not None:
            with pytest.raises(ApprovalNeeded):
                await host.broker.dispatch(call("t"), "mail.send", LETTER)
        await host.broker.dispatch(call("s"), "mail.send", LETTER)
        if other is None:
            await host.broker.dispatch(call("t"), "mail.send", LETTER)
    assert len(sent) == (1 if other else 2)


async def test_requests_are_deleted_with_their_run(make_host, mail):
    async with make_host(*mail) as host:
        call = Call("1", Grant.parse(["mail"]), "d", Origin(run="r"), anyio.current_time() + 600)
        with pytest.raises(ApprovalNeeded):
            await host.broker.dispatch(call, "mail.send", LETTER)
        kept = await ask(host)
        await host.approvals.withdraw("r")
        assert [one.request.id for one in await host.approvals.list()] == [kept]


async def test_answers_that_were_used_long_ago_are_forgotten_and_open_requests_of_agents_are_not(make_host, mail):
    old = time.time() - 8 * 86_400
    async with make_host(*mail) as host:
        used = (await approve(host)).request.id
        await host.op("mail.send", LETTER)
        await rewrite(host, used, used=old)
        call = Call("1", Grant.parse(["mail"]), "d", Origin(session="s", run="r"), anyio.current_time() + 600)
        with pytest.raises(ApprovalNeeded) as caught:
            await host.broker.dispatch(call, "mail.send", LETTER)
        kept = caught.value.request.id
        document = await host.store.get(f"approval/{kept}")
        await rewrite(host, kept, request={**document.value["request"], "asked": old})
    async with make_host(*mail) as host:
        new = await ask(host, {**LETTER, "text": "new"})
        assert {one.request.id for one in await host.approvals.list()} == {kept, new}


async def test_effects_without_a_question_read_and_write_no_approvals(make_host, mail, hook):
    @hookimpl
    def fine(event):
        return Allow("fine")

    fine.__name__ = "op_call"
    async with make_host(mail[0], hook("fine", fine), approver=answering(Approval("deny"))) as host:
        await host.op("mail.send", LETTER)
        assert list(await host.store.keys("approval")) == []
        assert not (host.home / "approvals.key").exists()


async def test_denial_of_a_lasting_answer_revokes_its_grant(make_host, mail, sent):
    async with make_host(*mail) as host:
        identifier = (await approve(host, scope="always")).request.id
        await host.op("mail.send", LETTER)
        assert (await host.approvals.get(identifier)).state == "granted"
        await host.approvals.answer(identifier, Approval("deny", by="Ann"))
    async with make_host(*mail) as host:
        await ask(host)
        records = await query(host.ledger.folder, op="approval.answer")
    assert sent == ["hello"]
    assert [one.status for one in records] == ["denied", "done"]


async def test_answer_is_not_shared_with_effects_that_come_later(make_host, mail, sent):
    approver = answering(Approval("deny"), Approval("allow", "always"), Approval("deny"))
    async with make_host(*mail, approver=approver) as host:
        with pytest.raises(OpDenied):
            await host.op("mail.send", LETTER)
        await host.op("mail.send", LETTER)
        await host.approvals.answer(approver.asked[0].id, Approval("deny"))  # revokes the grant
        with pytest.raises(OpDenied):
            await host.op("mail.send", LETTER)
    assert (len(approver.asked), sent) == (3, ["hello"])
