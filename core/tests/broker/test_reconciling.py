"""``reconcile``: its arguments, and what is stored of its answer."""

import pytest
from pydantic import BaseModel
from sideband.broker import Claims, recover
from sideband.ledger import Intent
from sideband.ops import EffectUnknown, Level, OpContext, Origin, Reconciled, op

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


class Name(BaseModel):
    name: str = ""


class Ledger:
    """A ledger after a crash, with unsettled intents. It collects the outcomes."""

    def __init__(self, *intents):
        self.intents = intents
        self.outcomes = []

    async def orphans(self):
        return self.intents

    async def outcome(self, entry, *, durable=False):
        self.outcomes.append((entry, durable))


def intent(op="mail.send", key="k", principal="user"):
    return Intent(
        effect="dead-1",
        op=op,
        key=key,
        params={"name": "letter"},
        grant=("mail",),
        origin=Origin(principal, skill="writer"),
        level=Level.RESTRICTED,
    )


@pytest.fixture
def mail(family):
    """Return a function that creates a plugin with an op with the given ``reconcile``."""

    def make(reconcile):
        @op("mail.send", requires="mail", level=Level.RESTRICTED, record=["name"], reconcile=reconcile)
        async def send(params: Name, ctx: OpContext) -> str:
            return "sent again"

        return family("mail", send)

    return make


async def test_reconcile_gets_the_record_and_the_grant_of_the_effect(make_host, mail):
    seen = []

    async def reconcile(recorded, ctx):
        seen.append((dict(recorded.params), ctx.effect, ctx.domain, ctx.origin.skill))
        await ctx.dispatch("mail.send", {})
        return Reconciled(happened=True)

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        (recovered,) = await recover(host.broker, ledger, Claims(host.store, host.ledger))
    assert seen == [({"name": "letter"}, "dead-1", "dead-1", "writer")]
    assert recovered.status == "done"


async def test_result_of_reconcile_is_redacted_durable_and_stored_for_the_key(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result=f"sent with {CANARY}")

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        host.redactor.protect(CANARY, "canary")
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        kept = await host.store.get("claims/k")
    ((outcome, durable),) = ledger.outcomes
    assert (outcome.status, outcome.result, durable) == ("done", "sent with [redacted:canary]", True)
    assert (kept.value["state"], kept.value["result"]) == ("done", "sent with [redacted:canary]")


async def test_result_of_reconcile_is_not_stored_without_a_key(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result="sent")

    ledger = Ledger(intent(key=None))
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        assert list(await host.store.keys("claims/")) == []
    assert ledger.outcomes[0][0].result is None


async def test_effect_that_did_not_happen_is_failed_and_its_key_is_free(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=False)

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        assert (await host.store.get("claims/k")).value["state"] == "failed"
    assert "it did not happen" in ledger.outcomes[0][0].error["message"]


async def test_effect_without_an_answer_is_unknown_and_its_key_remains_claimed(make_host, mail):
    async def reconcile(recorded, ctx):
        return None

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        claim = (await host.store.get("claims/k")).value
        with pytest.raises(EffectUnknown):
            await Claims(host.store, host.ledger).take("k", effect="new", op=claim["op"], digest=claim["digest"])
    assert ledger.outcomes[0][0].error["code"] == "effect.unknown"


async def test_key_of_another_principal_remains_claimed_by_that_principal(make_host, mail):
    async def reconcile(recorded, ctx):
        return None

    async with make_host(mail(reconcile)) as host:
        claims = Claims(host.store, host.ledger)
        alice = {"op": "mail.send", "digest": "d", "origin": Origin("alice")}
        await claims.take("k", effect="dead-1", **alice)
        await recover(host.broker, Ledger(intent(principal="alice")), claims)
        with pytest.raises(EffectUnknown):
            await claims.take("k", effect="new", **alice)
        assert await claims.take("k", effect="new", op="mail.send", digest="d") is None


async def test_missing_op_is_named_in_the_log(make_host, caplog):
    async with make_host() as host:
        await recover(host.broker, Ledger(intent()), Claims(host.store, host.ledger))
    assert "unknown op `mail.send`" in caplog.text
