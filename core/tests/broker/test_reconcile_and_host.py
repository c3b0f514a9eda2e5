"""FAILS TODAY (each test shows a bug). Nothing that a plugin does keeps a host from starting or ending."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, SidebandError, hookimpl
from sideband.broker import Claims, _recovery, recover
from sideband.ledger import Intent
from sideband.ops import Level, OpContext, Reconciled, op

pytestmark = pytest.mark.anyio


class Name(BaseModel):
    name: str = ""


class Ledger:
    def __init__(self):
        self.outcomes = []

    async def orphans(self):
        return [Intent(effect="dead-1", op="mail.send", key="k", params={}, level=Level.RESTRICTED)]

    async def outcome(self, entry, *, durable=False):
        self.outcomes.append(entry.status)


@pytest.fixture
def mail(family):
    def make(reconcile):
        @op("mail.send", level=Level.RESTRICTED, reconcile=reconcile)
        async def send(params: Name, ctx: OpContext) -> str:
            return "sent"

        return family("mail", send)

    return make


async def test_a_reconcile_that_hangs_leaves_the_effect_unknown_and_the_host_starts(make_host, mail, monkeypatch):
    monkeypatch.setattr(_recovery, "_RECONCILE_SECONDS", 0.05)

    async def reconcile(recorded, ctx):
        await anyio.sleep_forever()

    ledger = Ledger()
    async with make_host(mail(reconcile)) as host:
        with anyio.fail_after(2):
            await recover(host.broker, ledger, Claims(host.store, host.ledger))
    assert ledger.outcomes == ["unknown"]


@pytest.mark.parametrize("answer", [True, Reconciled(happened=True, result=object()), Reconciled(True, float("nan"))])
async def test_a_reconcile_that_answers_nonsense_leaves_the_host_starting(make_host, mail, answer):
    async def reconcile(recorded, ctx):
        return answer

    ledger = Ledger()
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
    assert len(ledger.outcomes) == 1


async def test_what_a_reconcile_opens_is_closed(make_host, mail):
    closed = []

    async def reconcile(recorded, ctx):
        async def close():
            closed.append(1)

        ctx.on_call_end(close)

    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, Ledger(), Claims(host.store, host.ledger))
    assert closed == [1]


@op("mail.note")
async def note(params: Name, ctx: OpContext) -> str:
    return "noted"


async def test_a_lifespan_that_causes_an_effect_before_or_after_the_broker_is_told_so_by_a_sideband_error(
    make_host, family
):
    raised = []

    @asynccontextmanager
    async def lifespan(ctx):
        for moment in ("enter", "leave"):
            try:
                await ctx.dispatch("mail.note", {})
            except SidebandError:
                pass
            except Exception as error:  # noqa: BLE001  it collects whatever is not typed
                raised.append((moment, repr(error)))
            if moment == "enter":
                yield

    @hookimpl
    def effect(event): ...

    early = Plugin(kind="hook", name="early", value=SimpleNamespace(effect=effect, lifespan=lifespan))
    async with make_host(family("mail", note), early):
        pass
    assert raised == []
