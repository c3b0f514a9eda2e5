"""A host that replays asks no op for the outcome of effects that an earlier host left."""

import pytest
from pydantic import BaseModel
from sideband.ledger import Intent
from sideband.ops import Level, OpContext, Reconciled, op

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


async def test_interrupted_effects_wait_for_a_host_that_does_not_replay(hosting, family, tmp_path):
    asked = []

    async def reconcile(recorded, ctx) -> Reconciled:
        asked.append(recorded.op)
        return Reconciled(happened=True)

    @op("mail.send", level=Level.RESTRICTED, reconcile=reconcile)
    async def send(params: Nothing, ctx: OpContext) -> None:
        """Send a letter."""

    mail, home = family("mail", send), tmp_path / "home"
    async with hosting("record", mail, home=home) as host:
        intent = Intent(effect=host.ledger.new_effect_id(), op="mail.send", level=Level.RESTRICTED)
        await host.ledger.intent(intent, durable=True)
    async with hosting("replay", mail, home=home) as host:
        assert (asked, host.recovered) == ([], ())
    async with hosting("record", mail, home=home):
        assert asked == ["mail.send"]
