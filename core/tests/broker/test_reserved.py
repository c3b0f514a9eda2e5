"""What a guard reserves for an effect is given back if the effect does not begin, whatever the reason."""

import errno
import os

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.errors import ReservationRefused
from sideband.hooks import Ask, Deny, Replace
from sideband.ledger import LedgerError
from sideband.ops import Level, OpContext, OpDenied, OpError, OpFailed, op
from sideband.store import Reservations

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Letter(BaseModel):
    text: str = ""


class Refused(OpFailed):
    nothing_happened = True


@op("mail.send", level=Level.RESTRICTED)
async def send(params: Letter, ctx: OpContext) -> str:
    if params.text == "fail":
        raise Refused("the address is wrong")
    return params.text


@pytest.fixture
def mail(family):
    return family("mail", send)


@pytest.fixture
def guard():
    """Return a function that creates a guard which answers with what a function returns for an event."""

    def make(answer):
        class Guard:
            @hookimpl
            async def op_call(self, event, ctx):
                if "holder" not in event.reserved:
                    limits = Reservations(ctx.store)
                    event.reserved["holder"] = await limits.take("mail", of=1, seconds=3_600, durable=False)
                found = answer(event)
                return await found if hasattr(found, "__await__") else found

        return Plugin("guard", "holder", Guard)

    return make


async def is_free(host):
    """Return whether the only reservation is free."""
    try:
        taken = await Reservations(host.context_for("holder").store).take("mail", of=1, seconds=3_600)
    except ReservationRefused:
        return False
    await taken.give_back()
    return True


async def test_reservation_of_an_effect_is_used(make_host, mail, guard):
    async with make_host(mail, guard(lambda event: None)) as host:
        assert await is_free(host)
        await host.op("mail.send", {})
        assert not await is_free(host)


async def test_reservation_of_an_effect_that_began_and_failed_is_used(make_host, mail, guard):
    async with make_host(mail, guard(lambda event: None)) as host:
        with pytest.raises(Refused):
            await host.op("mail.send", {"text": "fail"})
        assert not await is_free(host)


@pytest.mark.parametrize("answer", [Deny("no"), Ask("May I?"), Replace({"text": 1})], ids=["deny", "ask", "invalid"])
async def test_reservation_is_given_back_if_the_effect_is_not_allowed(make_host, mail, guard, answer):
    async with make_host(mail, guard(lambda event: answer)) as host:
        with pytest.raises(OpError):
            await host.op("mail.send", {})
        assert await is_free(host)


async def test_reservation_is_given_back_if_a_later_guard_denies(make_host, mail, guard, hook):
    @hookimpl
    def op_call(event):
        return Deny("not today")

    async with make_host(mail, guard(lambda event: None), hook("later", op_call)) as host:
        with pytest.raises(OpDenied, match="`later`"):
            await host.op("mail.send", {})
        assert await is_free(host)


async def test_reservation_is_given_back_if_an_earlier_answer_is_used_again(make_host, mail, guard):
    reserved = []

    def allow(event):
        reserved.append(event.reserved)

    async with make_host(mail, guard(allow)) as host:
        assert await host.op("mail.send", {"text": "once"}, key="k") == "once"
        await host.context_for("holder").store.delete("reservation/3600.0/mail")
        assert await host.op("mail.send", {"text": "once"}, key="k") == "once"
        assert len(reserved) == 2
        assert await is_free(host)


async def test_reservation_is_given_back_if_the_effect_cannot_be_recorded(make_host, mail, guard, monkeypatch):
    async with make_host(mail, guard(lambda event: None)) as host:

        def fail(descriptor):
            if os.fstat(descriptor).st_ino in {file.stat().st_ino for file in host.ledger.folder.glob("*.jsonl")}:
                raise OSError(errno.EIO, "no disk")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", fail)
            with pytest.raises(LedgerError):
                await host.op("mail.send", {})
        assert await is_free(host)


@both_backends
async def test_reservation_is_given_back_if_the_effect_is_cancelled_before_it_begins(make_host, mail, guard):
    asked = anyio.Event()

    def wait(event):
        asked.set()
        return anyio.sleep_forever()

    async with make_host(mail, guard(wait)) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "mail.send", {})
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await is_free(host)


@both_backends
async def test_reservation_of_an_effect_that_is_cancelled_while_it_runs_is_used(make_host, family, guard):
    began = anyio.Event()

    @op("mail.send", level=Level.RESTRICTED)
    async def slow(params: Letter, ctx: OpContext) -> None:
        began.set()
        await anyio.sleep_forever()

    async with make_host(family("mail", slow), guard(lambda event: None)) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "mail.send", {})
            await began.wait()
            tasks.cancel_scope.cancel()
        assert not await is_free(host)


async def test_all_is_given_back_even_if_one_thing_cannot_be(make_host, mail, guard):
    class Broken:
        async def give_back(self):
            raise RuntimeError("gone")

    def deny(event):
        event.reserved.update({"broken": Broken(), "holder": event.reserved.pop("holder")})
        return Deny("no")

    async with make_host(mail, guard(deny)) as host:
        with pytest.raises(OpDenied, match="no"):
            await host.op("mail.send", {})
        assert await is_free(host)


async def test_hint_of_a_guard_is_that_of_the_denial(make_host, mail, hook):
    @hookimpl
    def op_call(event):
        return Deny("the office is closed", hint="try again tomorrow")

    async with make_host(mail, hook("hours", op_call)) as host:
        with pytest.raises(OpDenied, match=r"^mail\.send was denied by `hours`: the office is closed$") as caught:
            await host.op("mail.send", {})
    assert caught.value.hint == "try again tomorrow"
