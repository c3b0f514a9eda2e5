"""Approvals of parallel effects: one question for all that ask the same, and no answer that admits too many."""

from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest
from sideband.approvals import Approval, ApprovalNeeded
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio

BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
LETTER = {"to": "ann", "text": "hello"}
is_late = ContextVar("is_late", default=False)


@BOTH_BACKENDS
async def test_equal_effects_in_parallel_are_asked_about_once_if_the_answer_lasts(make_host, post):
    approver = post.answering(Approval("allow", "always"))
    async with make_host(*post.plugins, approver=approver) as host, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(host.op, "mail.send", LETTER)
    assert (len(approver.asked), len(post.sent)) == (1, 5)


@BOTH_BACKENDS
async def test_equal_effects_in_parallel_are_never_admitted_by_the_same_answer(make_host, post):
    open_questions = []

    async def approver(request):
        open_questions.append(request.id)
        assert len(open_questions) == 1
        await anyio.lowlevel.checkpoint()
        open_questions.clear()
        asked.append(request)
        return Approval("allow" if len(asked) < 3 else "deny")

    asked, denied = [], []
    async with make_host(*post.plugins, approver=approver) as host:

        async def send():
            try:
                await host.op("mail.send", LETTER)
            except OpDenied:
                denied.append(1)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
    assert (len(asked), len(post.sent), len(denied)) == (3, 2, 3)


@BOTH_BACKENDS
@pytest.mark.parametrize("answer", [Approval("allow", "always"), Approval("deny")])
async def test_answer_that_is_given_while_an_equal_effect_looks_for_one_is_for_both(make_host, post, answer):
    approver = post.answering(answer)
    async with make_host(*post.plugins, approver=approver) as host:
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
    assert (len(post.sent), len(outcomes)) == ((2, 0) if answer.allowed else (0, 2))


@BOTH_BACKENDS
async def test_two_hosts_on_one_home_use_an_answer_exactly_once(make_host, post):
    async with make_host(*post.plugins) as one, make_host(*post.plugins) as other:
        for number in range(10):
            letter = {**LETTER, "text": str(number)}
            await post.approve(one, letter)
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
    assert post.sent == [str(number) for number in range(10)]


@BOTH_BACKENDS
async def test_answer_to_a_cancelled_caller_is_asked_again(make_host, post):
    asked = anyio.Event()

    async def approver(request):
        if not asked.is_set():
            asked.set()
            await anyio.sleep_forever()
        return Approval("allow")

    async with make_host(*post.plugins, approver=approver) as host:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.op, "mail.send", LETTER)
                await asked.wait()
                scope.cancel()
        assert await host.op("mail.send", LETTER) == 1


@BOTH_BACKENDS
@pytest.mark.parametrize("other", ["approver", "principal"])
async def test_answer_is_not_shared_with_another_approver_or_principal(make_host, post, other):
    asked, both = [], anyio.Event()

    def approver_of(name):
        async def approver(request):
            asked.append(request.origin.principal)
            if len(asked) == 2:
                both.set()
            await both.wait()
            return Approval("deny", by=name)

        return approver

    one = approver_of("one")
    another = one if other == "principal" else approver_of("another")
    answers = {}
    async with make_host() as host:

        async def decide(tool, approver, principal):
            request = post.grant_request(host, tool=tool, principal=principal)
            answers[tool] = await host.approvals.decide(request, approver, about="reader")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide, "a", one, "user")
            tasks.start_soon(decide, "b", another, "guest" if other == "principal" else "user")
    assert len(asked) == 2
    assert {tool: answer.answer.by for tool, answer in answers.items()} == {
        "a": "one",
        "b": "one" if other == "principal" else "another",
    }


@BOTH_BACKENDS
async def test_answer_for_a_session_is_not_shared_with_another_one(make_host, post):
    approver = post.answering(Approval("allow", "session"))
    answers = {}
    async with make_host() as host:

        async def decide(session):
            request = post.grant_request(host, session=session)
            answers[session] = await host.approvals.decide(request, approver, about="reader")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for session in "sst":
                    tasks.start_soon(decide, session)
    assert sorted(one.origin.session for one in approver.asked) == ["s", "t"]
    assert {session: one.request.origin.session for session, one in answers.items()} == {"s": "s", "t": "t"}


@pytest.mark.parametrize("elsewhere", ["granted", "withdrawn"])
async def test_what_happens_to_a_request_while_its_approver_is_asked_counts(make_host, post, elsewhere):
    asked = []

    async def approver(request):
        asked.append(request)
        if elsewhere == "granted":
            await host.approvals.answer(request.id, Approval("allow", "always"))
        elif len(asked) == 1:
            await host.approvals.withdraw(run="r")
        return Approval("allow")

    async with make_host(*post.plugins, approver=approver) as host:
        await host.broker.dispatch(post.call(), "mail.send", LETTER)
    assert (len(asked), post.sent) == (1 if elsewhere == "granted" else 2, ["hello"])
