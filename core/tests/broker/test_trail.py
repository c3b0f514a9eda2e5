"""Records of effects: the preview that the approver saw, and the enclosing effect."""

import time

import anyio
import pytest
from pydantic import BaseModel
from sideband import hookimpl
from sideband.approvals import Approval
from sideband.hooks import Ask, Replace
from sideband.ledger import find
from sideband.ops import Level, OpContext, OpDenied, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Letter(BaseModel):
    text: str = ""


@hookimpl
def op_call(event):
    return Ask("Really?")


@pytest.fixture
def mail(family):
    """Return a function that creates a plugin with an op that has a preview."""

    def make(preview=None):
        async def would(params, ctx):
            return f"send {len(params.text)} letters, canary-7f3a9c51"

        @op("mail.send", level=Level.RESTRICTED, preview=preview or would)
        async def send(params: Letter, ctx: OpContext) -> str:
            return params.text

        return family("mail", send)

    return make


@pytest.fixture
def person():
    """Return an approver that approves everything and collects the previews."""
    shown = []

    async def approver(request):
        shown.append(request.preview)
        return Approval("allow")

    approver.shown = shown
    return approver


async def test_approver_sees_the_preview_and_the_record_contains_it(make_host, mail, hook, person):
    async with make_host(mail(), hook("asker", op_call), approver=person) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        effects, before = [], time.time()
        await host.op("mail.send", {"text": "abc"}, on_effect=lambda report: effects.append(report.id))
        record = await find(host.ledger.folder, effects[0])
    assert person.shown == ["send 3 letters, [redacted:canary]"]
    answer = record.decisions[-1]
    assert (answer["by"], answer["said"], answer["scope"]) == ("approver", "approve", "once")
    assert answer["note"] == "shown: send 3 letters, [redacted:canary]"
    assert before <= answer["time"] <= time.time()


async def test_preview_uses_the_parameters_replaced_by_a_guard(make_host, mail, hook, person):
    @hookimpl(before=["asker"])
    def tame(event):
        return Replace({"text": "tame!"})

    tame.__name__ = "op_call"
    async with make_host(mail(), hook("a-tamer", tame), hook("asker", op_call), approver=person) as host:
        assert await host.op("mail.send", {"text": "wild"}) == "tame!"
    assert person.shown[0].startswith("send 5 letters")


async def test_failing_preview_is_shown_and_does_not_decide(make_host, mail, hook, person):
    async def broken(params, ctx):
        raise LookupError("no")

    async with make_host(mail(broken), hook("asker", op_call), approver=person) as host:
        assert await host.op("mail.send", {"text": "abc"}) == "abc"
    assert person.shown == ["preview failed: LookupError"]


@both_backends
async def test_hanging_preview_times_out(make_host, mail, hook, person, monkeypatch):
    async def hanging(params, ctx):
        await anyio.sleep_forever()

    monkeypatch.setattr("sideband.broker._broker._PREVIEW_SECONDS", 0.05)
    async with make_host(mail(hanging), hook("asker", op_call), approver=person) as host:
        assert await host.op("mail.send", {"text": "abc"}) == "abc"
    assert person.shown == ["preview failed: TimeoutError"]


async def test_op_without_a_preview_shows_nothing(make_host, family, hook, person):
    @op("mail.send", level=Level.RESTRICTED)
    async def send(params: Letter, ctx: OpContext) -> None:
        pass

    async with make_host(family("mail", send), hook("asker", op_call), approver=person) as host:
        await host.op("mail.send", {})
    assert person.shown == [None]


async def test_record_of_a_child_effect_has_the_enclosing_effect(make_host, family):
    @op("mail.send", level=Level.RESTRICTED)
    async def send(params: Letter, ctx: OpContext) -> None:
        await ctx.dispatch("mail.stamp", {})

    @op("mail.stamp", level=Level.RESTRICTED)
    async def stamp(params: Letter, ctx: OpContext) -> None:
        pass

    async with make_host(family("mail", send, stamp)) as host:
        effects = {}
        await host.op("mail.send", {}, on_effect=lambda report: effects.update({report.op: report.id}))
        child = await find(host.ledger.folder, effects["mail.stamp"])
        parent = await find(host.ledger.folder, effects["mail.send"])
    assert (child.within, parent.within) == (parent.effect, None)


async def test_record_of_a_denied_child_effect_has_the_enclosing_effect(make_host, family):
    @op("mail.send", level=Level.RESTRICTED)
    async def send(params: Letter, ctx: OpContext) -> None:
        with pytest.raises(OpDenied):
            await ctx.dispatch("mail.stamp", {}, capabilities=[])

    @op("mail.stamp", requires="mail", level=Level.RESTRICTED)
    async def stamp(params: Letter, ctx: OpContext) -> None:
        pass

    async with make_host(family("mail", send, stamp)) as host:
        effects = {}
        await host.op("mail.send", {}, on_effect=lambda report: effects.update({report.op: report.id}))
        child = await find(host.ledger.folder, effects["mail.stamp"])
    assert (child.status, child.within) == ("denied", effects["mail.send"])
