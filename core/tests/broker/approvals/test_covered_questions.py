"""Questions that are open when another answer gives a grant: those that it covers end, and no others."""

from contextlib import asynccontextmanager

import anyio
import pytest
from sideband.approvals import Approval

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


class Desk:
    """An approver that answers about the letter ``first`` once all others are asked about, and never about those."""

    def __init__(self, scope, *others):
        self.answer = Approval("allow", scope, by="Ann")
        self.asked = {text: anyio.Event() for text in others}
        self.asked_again = anyio.Event()

    async def wait(self):
        for event in self.asked.values():
            await event.wait()

    async def __call__(self, request):
        if (text := request.effect["text"]) != "first":
            if self.asked[text].is_set():
                self.asked_again.set()
            self.asked[text].set()
            await anyio.sleep_forever()
        await self.wait()
        return self.answer


def letter(text, to="ann"):
    return {"to": to, "text": text}


async def states(host):
    return sorted(one.state for one in await host.approvals.list())


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_question_that_the_grant_covers_ends_and_its_request_is_deleted(make_host, post, scope):
    desk = Desk(scope, "second", "third")
    async with make_host(*post.plugins, approver=desk) as host:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for text in ("first", *desk.asked):
                    tasks.start_soon(host.broker.dispatch, post.call(), "mail.send", letter(text))
        assert await states(host) == ["granted"]
    assert not desk.asked_again.is_set()
    assert sorted(post.sent) == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("scope", "to", "session"),
    [("once", "ann", "s"), ("always", "bob", "s"), ("session", "ann", "t")],
    ids=["one effect", "another capability", "another session"],
)
async def test_question_that_the_grant_does_not_cover_stays_open(make_host, post, scope, to, session):
    desk = Desk(scope, "second")
    async with make_host(*post.plugins, approver=desk) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(host.broker.dispatch, post.call(session), "mail.send", letter("second", to))
        await desk.wait()
        await host.broker.dispatch(post.call(), "mail.send", letter("first"))
        await anyio.wait_all_tasks_blocked()
        assert "open" in await states(host)
        tasks.cancel_scope.cancel()
    assert post.sent == ["first"]


async def test_question_about_the_letter_of_another_principal_stays_open(make_host, post):
    desk = Desk("always", "second")
    async with make_host(*post.plugins, approver=desk) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: host.op("mail.send", letter("second"), principal="guest"))
        await desk.wait()
        await host.op("mail.send", letter("first"))
        await anyio.wait_all_tasks_blocked()
        assert "open" in await states(host)
        tasks.cancel_scope.cancel()
    assert post.sent == ["first"]


async def test_question_ends_when_the_program_gives_a_grant_that_covers_it(make_host, post):
    desk = Desk("once", "second")
    async with make_host(*post.plugins, approver=desk) as host:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.broker.dispatch, post.call(), "mail.send", letter("second"))
                await desk.wait()
                (asked,) = await host.approvals.list()
                await host.approvals.answer(asked.request.id, Approval("allow", "session", by="Ann"))
    assert post.sent == ["second"]


async def test_question_about_a_grant_stays_open_if_the_grant_of_another_principal_is_remembered(make_host, post):
    asked, opened = [], anyio.Event()

    async def open_approver(request):
        asked.append(request.id)
        opened.set()
        await anyio.sleep_forever()

    async def approver(request):
        await opened.wait()
        return Approval("allow", "always", by="Ann")

    async with make_host(*post.plugins) as host, anyio.create_task_group() as tasks:
        guest, ann = (post.grant_request(host, principal=name) for name in ("guest", "ann"))
        tasks.start_soon(host.approvals.decide, guest, open_approver)
        await host.approvals.decide(ann, approver)
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
            await host.approvals.list()
        tasks.cancel_scope.cancel()
    assert asked == [guest.id]


async def test_question_that_has_ended_is_not_asked_again_before_the_grant_is_stored(make_host, post):
    desk = Desk("always", "second")
    async with make_host(*post.plugins, approver=desk) as host:
        whole = type(host.store)

        class Slow(whole):
            """Stores the grant late, or once the other question is asked again."""

            __slots__ = ()

            @asynccontextmanager
            async def transaction(self, **options):
                with anyio.move_on_after(0.5):
                    await desk.asked_again.wait()
                async with whole.transaction(self, **options) as transaction:
                    yield transaction

        host.store.__class__ = Slow
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for text in ("first", "second"):
                    tasks.start_soon(host.broker.dispatch, post.call(), "mail.send", letter(text))
    assert sorted(post.sent) == ["first", "second"]
    assert not desk.asked_again.is_set()
