"""Events of approvals: when a person is asked, and how the request ends."""

from types import SimpleNamespace

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sideband import Plugin, hookimpl
from sideband.approvals import Approval, ApprovalNeeded
from sideband.ops import Level, OpDenied, OpFailed

pytestmark = pytest.mark.anyio

LETTER = {"to": "ann", "text": "hello"}


@pytest.fixture
def events():
    return []


@pytest.fixture
def watching(events):
    """A plugin that observes approvals."""

    @hookimpl
    def approval_start(event):
        events.append(event)

    @hookimpl
    async def approval_end(event):
        await checkpoint()
        events.append(event)

    return Plugin("hook", "watching", SimpleNamespace(approval_start=approval_start, approval_end=approval_end))


async def test_request_without_an_approver_starts_once_and_ends_with_its_answer(make_host, post, watching, events):
    async with make_host(*post.plugins, watching) as host:
        identifiers = {await post.ask(host) for _ in range(3)}
        (identifier,) = identifiers
        await host.approvals.answer(identifier, Approval("deny"))
    start, end = events
    assert (start.hook, start.request, start.about, start.subject, start.waits) == (
        "approval_start",
        identifier,
        "effect",
        "mail.send",
        False,
    )
    assert (end.hook, end.request, end.verdict, end.scope) == ("approval_end", identifier, "deny", "once")
    assert (start.level, end.level, end.origin) == (Level.RESTRICTED, Level.RESTRICTED, start.origin)
    assert end.ms >= 0


async def test_answer_of_an_approver_ends_the_request_before_the_effect_begins(make_host, post, watching, events):
    async def approver(request):
        events.append("asked")
        return Approval("allow")

    async with make_host(*post.plugins, watching, approver=approver) as host:
        await host.op("mail.send", LETTER)
    start, asked, end = events
    assert (start.waits, asked, end.verdict) == (True, "asked", "allow")


@pytest.mark.parametrize("wrong", [None, RuntimeError("no")])
async def test_request_whose_approver_fails_ends_unanswered(make_host, post, watching, events, wrong):
    async def approver(request):
        if wrong is not None:
            raise wrong

    async with make_host(*post.plugins, watching, approver=approver) as host:
        with pytest.raises(OpDenied):
            await host.op("mail.send", LETTER)
    assert [event.hook for event in events] == ["approval_start", "approval_end"]
    assert events[-1].verdict == "unanswered"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_request_that_is_cancelled_ends_unanswered(make_host, post, watching, events):
    with anyio.CancelScope() as scope:

        async def approver(request):
            scope.cancel()
            await anyio.sleep_forever()

        async with make_host(*post.plugins, watching, approver=approver) as host:
            await host.op("mail.send", LETTER)
    assert [event.hook for event in events] == ["approval_start", "approval_end"]
    assert events[-1].verdict == "unanswered"


async def test_request_that_cannot_be_stored_neither_starts_nor_ends(make_host, post, watching, events, monkeypatch):
    async def approver(request):
        raise AssertionError("it was not stored")

    async def fail(*_, **__):
        raise OSError("no space")

    async with make_host(*post.plugins, watching, approver=approver) as host:
        monkeypatch.setattr(type(host.store), "put", fail)
        with pytest.raises(OpFailed, match="no space"):
            await host.op("mail.send", LETTER)
        monkeypatch.undo()
    assert events == []


async def test_request_that_is_answered_while_an_approver_waits_ends_once(make_host, post, watching, events):
    asked = []

    async def approver(request):
        asked.append(request)
        tasks.start_soon(host.approvals.answer, request.id, Approval("allow", "session"))
        await anyio.sleep_forever()

    async with make_host(*post.plugins, watching, approver=approver) as host, anyio.create_task_group() as tasks:
        await host.broker.dispatch(post.call(), "mail.send", LETTER)
    assert len(asked) == 1
    found = [(event.hook, getattr(event, "verdict", "")) for event in events]
    assert found == [("approval_start", ""), ("approval_end", "allow")]


async def test_events_of_approvals_contain_no_parameter(make_host, post, watching, events):
    async with make_host(*post.plugins, watching) as host:
        with pytest.raises(ApprovalNeeded):
            await host.op("mail.send", {"to": "ann", "text": "canary-7f3a9c51"})
    assert "canary-7f3a9c51" not in repr(events)
