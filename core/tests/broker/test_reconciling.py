"""What an op is given when it is asked what became of an effect, and what is kept of its answer."""

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
    """The ledger after a crash: what is open, and what is said of it now."""

    def __init__(self, *intents):
        self.intents = intents
        self.outcomes = []

    async def orphans(self):
        return self.intents

    async def outcome(self, entry, *, durable=False):
        self.outcomes.append((entry, durable))


def intent(op="mail.send", key="k"):
    return Intent(
        effect="dead-1",
        op=op,
        key=key,
        params={"name": "letter"},
        grant=("mail",),
        origin=Origin(skill="writer"),
        level=Level.RESTRICTED,
    )


@pytest.fixture
def mail(family):
    """An op whose reconcile is given."""

    def make(reconcile):
        @op("mail.send", requires="mail", level=Level.RESTRICTED, record=["name"], reconcile=reconcile)
        async def send(params: Name, ctx: OpContext) -> str:
            return "sent again"

        return family("mail", send)

    return make


async def test_it_is_asked_with_what_the_ledger_knows_and_with_the_rights_of_the_effect(make_host, mail):
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


async def test_its_answer_is_redacted_and_on_disk_and_kept_for_the_key(make_host, mail):
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


async def test_without_a_key_no_answer_is_kept(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result="sent")

    ledger = Ledger(intent(key=None))
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        assert list(await host.store.keys("claims/")) == []
    assert ledger.outcomes[0][0].result is None


async def test_what_did_not_happen_has_failed_and_its_key_is_free(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=False)

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        assert (await host.store.get("claims/k")).value["state"] == "failed"
    assert "it did not happen" in ledger.outcomes[0][0].error["message"]


async def test_what_can_not_be_told_is_unknown_and_its_key_stays_taken(make_host, mail):
    async def reconcile(recorded, ctx):
        return None

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, Claims(host.store, host.ledger))
        claim = (await host.store.get("claims/k")).value
        with pytest.raises(EffectUnknown):
            await Claims(host.store, host.ledger).take("k", effect="new", op=claim["op"], digest=claim["digest"])
    assert ledger.outcomes[0][0].error["code"] == "effect.unknown"


async def test_a_family_that_is_gone_is_named_in_the_log(make_host, caplog):
    async with make_host() as host:
        await recover(host.broker, Ledger(intent()), Claims(host.store, host.ledger))
    assert "unknown op `mail.send`" in caplog.text
