"""Faulty ``reconcile`` functions and lifespans do not prevent a host from starting or stopping."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, SidebandError, hookimpl
from sideband.broker import _recovery, recover
from sideband.ledger import Intent
from sideband.ops import Level, OpContext, Reconciled, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Name(BaseModel):
    name: str = ""


class Ledger:
    def __init__(self):
        self.outcomes = []

    async def orphans(self):
        return [Intent(effect="dead-1", op="mail.send", key="k", params={}, level=Level.RESTRICTED)]

    async def outcome(self, entry, *, due):
        self.outcomes.append(entry.status)


@pytest.fixture
def mail(family):
    def make(reconcile):
        @op("mail.send", level=Level.RESTRICTED, reconcile=reconcile)
        async def send(params: Name, ctx: OpContext) -> str:
            return "sent"

        return family("mail", send)

    return make


@both_backends
async def test_hanging_reconcile_leaves_the_effect_unknown(make_host, mail, monkeypatch):
    monkeypatch.setattr(_recovery, "_RECONCILE_SECONDS", 0.05)

    async def reconcile(recorded, ctx):
        await anyio.sleep_forever()

    ledger = Ledger()
    async with make_host(mail(reconcile)) as host:
        with anyio.fail_after(2):
            await recover(host.broker, ledger, host.broker._claims)
    assert ledger.outcomes == ["unknown"]


@pytest.mark.parametrize("answer", [True, Reconciled(happened=True, result=object()), Reconciled(True, float("nan"))])
async def test_invalid_answer_of_reconcile_does_not_prevent_recovery(make_host, mail, answer):
    async def reconcile(recorded, ctx):
        return answer

    ledger = Ledger()
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, host.broker._claims)
    assert len(ledger.outcomes) == 1


async def test_cleanup_of_reconcile_runs(make_host, mail):
    closed = []

    async def reconcile(recorded, ctx):
        async def close():
            closed.append(1)

        ctx.on_call_end(close)

    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, Ledger(), host.broker._claims)
    assert closed == [1]


@op("mail.note")
async def note(params: Name, ctx: OpContext) -> str:
    return "noted"


@both_backends
async def test_dispatch_in_a_lifespan_outside_the_brokers_lifetime_raises_a_sideband_error(make_host, family):
    raised = []

    @asynccontextmanager
    async def lifespan(ctx):
        for moment in ("enter", "leave"):
            try:
                await ctx.dispatch("mail.note", {})
            except SidebandError:
                pass
            except Exception as error:  # noqa: BLE001  collects all untyped errors
                raised.append((moment, repr(error)))
            if moment == "enter":
                yield

    @hookimpl
    def effect(event): ...

    early = Plugin(kind="hook", name="early", value=SimpleNamespace(effect=effect, lifespan=lifespan))
    async with make_host(family("mail", note), early):
        pass
    assert raised == []
