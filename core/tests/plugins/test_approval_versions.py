"""Approvals are bound to the versions of the plugins that cause and guard an effect."""

import shutil

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
        return Ask("Really?")

def sideband_guards():
    return [Careful]
"""


@pytest.mark.parametrize("changed", [None, "op", "guard"])
async def test_answer_holds_only_for_the_versions_that_were_asked_about(site, tmp_path, changed):
    def install(version, kinds=("op", "guard")):
        if "op" in kinds:
            site.echo("echoed", version=version)
        if "guard" in kinds:
            site.plugin("guard", "careful", ASKING, version=version)

    def host():
        only = ["op.echoed", "guard.careful", "store.sqlite"]
        return Host(home=tmp_path / "home", settings={"policy": {"only": only}})

    async def say(on):
        return await on.op("echoed.say", {"text": "hello"})

    install("1.0")
    async with host() as first:
        with pytest.raises(ApprovalNeeded) as caught:
            await say(first)
        await first.approvals.answer(caught.value.request.id, Approval("allow"))
    if changed is not None:
        name = {"op": "test_echoed", "guard": "test_careful"}[changed]
        shutil.rmtree(site.folder / f"{name}-1.0.dist-info")
        install("1.1", [changed])
    async with host() as second:
        if changed is None:
            await say(second)
        else:
            with pytest.raises(ApprovalNeeded):
                await say(second)
