"""Approvals are bound to the versions of the plugins that request, cause and guard an effect."""

import pytest
from sideband import Host
from sideband.approvals import Approval, ApprovalNeeded

pytestmark = pytest.mark.anyio

ASKING = """
from sideband import hookimpl
from sideband.hooks import Ask

class Careful:
    @hookimpl
    def op_call(self, event):
        return Ask("Really?") if event.op == "echoed.say" else None

def sideband_guards():
    return [Careful]
"""
ORDERING = """
@op("orderer.order")
async def order(params: Params, ctx) -> str:
    return await ctx.dispatch("echoed.say", {"text": params.text})

say = order
"""


@pytest.mark.parametrize("changed", [None, "echoed", "orderer", "careful"])
async def test_answer_holds_only_for_the_versions_that_were_asked_about(site, tmp_path, changed):
    def host():
        only = ["op.echoed", "op.orderer", "guard.careful", "store.sqlite"]
        return Host(home=tmp_path / "home", settings={"policy": {"only": only}})

    async def say(on):
        return await on.op("orderer.order", {"text": "hello"})

    site.echo("echoed")
    site.echo("orderer", extra=ORDERING)
    site.plugin("guard", "careful", ASKING)
    async with host() as first:
        with pytest.raises(ApprovalNeeded) as caught:
            await say(first)
        await first.approvals.answer(caught.value.request.id, Approval("allow"))
    if changed is not None:
        metadata = site.folder / f"test_{changed}-1.0.dist-info" / "METADATA"
        metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
    async with host() as second:
        if changed is None:
            await say(second)
        else:
            with pytest.raises(ApprovalNeeded):
                await say(second)
