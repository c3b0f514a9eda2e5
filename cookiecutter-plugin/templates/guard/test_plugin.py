"""The guard does what each guard must do, and what its README says."""

from typing import ClassVar

import pytest
from sideband import Level
from sideband.hooks import OpCall
from sideband.ops import OpDenied, Origin
from sideband_testing import HostFactory
from sideband_testing.conformance import GuardConformance

GUARD = "guard.{{ cookiecutter.__entry }}"


def call(op: str) -> OpCall:
    return OpCall("effect-1", op, {"path": "notes.txt"}, Level.CONTROLLED, Origin("user"))


class TestConformance(GuardConformance):
    plugin = GUARD
    config: ClassVar = {"deny": ["shell.*"], "ask": ["files.delete"]}
    allows: ClassVar = [call("files.read"), call("shells.run")]
    denies: ClassVar = [call("shell.run"), call("files.delete")]


@pytest.mark.anyio
async def test_denied_op_is_not_run(sideband_host: HostFactory) -> None:
    settings = {"plugins": {"{{ cookiecutter.__entry }}": {"deny": ["crypto.*"]}}}
    async with sideband_host(GUARD, "op.crypto", settings=settings) as host:
        with pytest.raises(OpDenied, match="denied by the configuration"):
            await host.op("crypto.hash", {"data": "abc"})


@pytest.mark.anyio
async def test_other_ops_are_run(sideband_host: HostFactory) -> None:
    async with sideband_host(GUARD, "op.crypto") as host:
        assert await host.op("crypto.hash", {"data": "abc"})
