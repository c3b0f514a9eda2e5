"""``reconcile``: its arguments, and what is stored of its answer."""

import pytest
from attrs import evolve
from pydantic import BaseModel
from sideband.broker import CONTINUES, KeyReused, recover
from sideband.broker._values import digest_of
from sideband.ledger import Intent
from sideband.ops import EffectUnknown, Level, OpContext, Origin, Reconciled, op

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


class Name(BaseModel):
    name: str = ""


DIGEST = digest_of(Name(name="letter"))


class Ledger:
    """A ledger after a crash, with unsettled intents. It collects the outcomes."""

    def __init__(self, *intents):
        self.intents = intents
        self.outcomes = []

    async def orphans(self):
        return self.intents

    async def outcome(self, entry, *, due):
        self.outcomes.append((entry, due))


def intent(op="mail.send", key="k", principal="user", digest=""):
    return Intent(
        effect="dead-1",
        op=op,
        key=key,
        params={"name": "letter"},
        grant=("mail",),
        origin=Origin(principal, skill="writer"),
        params_digest=digest,
        level=Level.RESTRICTED,
    )


@pytest.fixture
def mail(family):
    """Return a function that creates a plugin with an op with the given ``reconcile``."""

    def make(reconcile):
        @op("mail.send", requires="mail", level=Level.RESTRICTED, record=["name"], reconcile=reconcile)
        async def send(params: Name, ctx: OpContext) -> str:
            return "sent again"

        @op("mail.look", level=Level.MONITORED, idempotent=True)
        async def look(params: Name, ctx: OpContext) -> None:
            pass

        return family("mail", send, look)

    return make


async def test_reconcile_gets_the_record_and_the_grant_of_the_effect(make_host, mail):
    seen = []

    async def reconcile(recorded, ctx):
        seen.append((dict(recorded.params), ctx.effect, ctx.domain, ctx.origin.skill))
        await ctx.dispatch("mail.send", {})
        return Reconciled(happened=True)

    ledger = Ledger(intent())
    async with make_host(mail(reconcile)) as host:
        (recovered,) = await recover(host.broker, ledger, host.broker._claims)
    assert seen == [({"name": "letter"}, "dead-1", "dead-1", "writer")]
    assert recovered.status == "done"


async def test_result_of_reconcile_is_redacted_and_returned_for_the_key(make_host, mail, leave_running, outcomes):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result=f"sent with {CANARY}")

    async with make_host(mail(reconcile)) as host:
        host.redactor.protect(CANARY, "canary")
        await leave_running(intent())
        await recover(host.broker, host.ledger, host.broker._claims)
        assert await host.broker.recall("k") == ("done", "sent with [redacted:canary]")
    (line,) = outcomes()
    assert (line["status"], line["state"], line["result"]) == ("done", "done", "sent with [redacted:canary]")


async def test_outcomes_that_recovery_finds_share_a_sync_before_the_next_effect(make_host, mail, leave_running, syncs):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True)

    for number in range(3):
        await leave_running(intent(key=f"k{number}"))
    syncs.clear()
    async with make_host(mail(reconcile)) as host:
        assert len(host.recovered) == 3
        assert syncs.count("00000001.jsonl") <= 1  # more only if that took more than a second
        await host.op("mail.look", {})
        assert "00000001.jsonl" in syncs


async def test_result_of_reconcile_is_not_stored_without_a_key(make_host, mail):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=True, result="sent")

    ledger = Ledger(intent(key=None))
    async with make_host(mail(reconcile)) as host:
        await recover(host.broker, ledger, host.broker._claims)
    assert ledger.outcomes[0][0].result is None


async def test_effect_that_did_not_happen_is_failed_and_its_key_is_free(make_host, mail, leave_running, outcomes):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=False)

    await leave_running(intent())
    async with make_host(mail(reconcile)) as host:
        assert await host.op("mail.send", {"name": "another letter"}, key="k") == "sent again"
    assert "it did not happen" in outcomes()[0]["error"]["message"]


async def test_effect_without_an_answer_is_unknown_and_its_key_remains_claimed(
    make_host, mail, leave_running, outcomes
):
    async def reconcile(recorded, ctx):
        return None

    await leave_running(intent(digest=DIGEST))
    async with make_host(mail(reconcile)) as host:
        with pytest.raises(EffectUnknown):
            await host.op("mail.send", {"name": "letter"}, key="k")
    assert outcomes()[0]["error"]["code"] == "effect.unknown"


async def test_repeatable_effect_may_be_repeated_with_its_key_but_no_other_effect(make_host, mail, leave_running):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=False, repeatable=True)

    await leave_running(intent(digest=DIGEST))
    async with make_host(mail(reconcile)) as host:
        with pytest.raises(KeyReused):
            await host.op("mail.send", {"name": "another letter"}, key="k")
        assert await host.op("mail.send", {"name": "letter"}, key="k") == "sent again"


@pytest.mark.parametrize(
    ("begun", "state"),
    [
        (evolve(intent("agent.child"), note={CONTINUES: True}), "repeatable"),
        (intent("agent.child"), "unknown"),
        (evolve(intent("mail.send"), note={CONTINUES: True}), "unknown"),
    ],
    ids=["own op that continues", "own op of an earlier version", "op of a plugin"],
)
async def test_only_an_own_op_with_a_mark_in_its_intent_continues_under_its_key(
    make_host, leave_running, outcomes, begun, state
):
    await leave_running(begun)
    async with make_host():
        assert [line["state"] for line in outcomes()] == [state]


async def test_key_of_another_principal_remains_claimed_by_that_principal(make_host, mail, leave_running):
    async def reconcile(recorded, ctx):
        return None

    await leave_running(intent(principal="alice", digest=DIGEST))
    async with make_host(mail(reconcile)) as host:
        with pytest.raises(EffectUnknown):
            await host.op("mail.send", {"name": "letter"}, key="k", principal="alice")
        assert await host.op("mail.send", {"name": "letter"}, key="k") == "sent again"


async def test_missing_op_is_named_in_the_log(make_host, caplog):
    async with make_host() as host:
        await recover(host.broker, Ledger(intent()), host.broker._claims)
    assert "unknown op `mail.send`" in caplog.text
