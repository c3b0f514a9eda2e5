"""Ops of plugins that cannot be used fail with the code, hint and exit code of the plugin's error."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import CapabilityInvalid, OpContext, OpNotFound, OpUnavailable, op
from sideband.plugins import PluginDenied

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@op("echo.say", requires="echo")
async def say(params: Nothing, ctx: OpContext) -> str:
    return "hello"


@pytest.fixture
def echo(family):
    return family("echo", say)


async def test_op_of_a_denied_plugin_has_the_reason_and_exit_code_3(make_host, echo, outcomes):
    async with make_host(echo, settings={"policy": {"deny": {"op.echo": "too loud"}}}) as host:
        with pytest.raises(OpUnavailable, match="too loud") as caught:
            await host.op("echo.say", {})
    assert (caught.value.code, caught.value.exit_code) == ("plugin.denied", 3)
    assert outcomes()[0]["error"]["code"] == "plugin.denied"


async def test_op_of_an_invalid_plugin_has_the_reason_and_exit_code_5(make_host):
    async with make_host(Plugin("op", "echo", SimpleNamespace(sideband_op=1))) as host:
        with pytest.raises(OpUnavailable, match="sideband_ops") as caught:
            await host.op("echo.say", {})
    assert (caught.value.code, caught.value.exit_code) == ("plugin.invalid", 5)


async def test_op_of_an_unknown_family_is_not_found(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpNotFound, match=r"unknown op `eco\.say`"):
            await host.op("eco.say", {})


async def test_grant_for_an_unknown_family_is_rejected(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(CapabilityInvalid, match=r"unknown op family .* \(did you mean `echo`"):
            await host.op("echo.say", {}, grants=["ecko"])


async def test_grant_for_a_denied_family_has_the_reason(make_host, echo):
    async with make_host(echo, settings={"policy": {"deny": {"op.echo": "too loud"}}}) as host:
        with pytest.raises(PluginDenied, match="too loud"):
            await host.op("echo.say", {}, grants=["echo"])


async def test_policy_for_an_unknown_plugin_is_reported_as_a_problem(make_host, echo, caplog):
    policy = {"deny": {"op.ecko": "x"}, "conflicts": {"op.nobody": "y"}}
    async with make_host(echo, settings={"policy": policy}) as host:
        problems = " ".join(host.plugins.problems)
    assert "`op.ecko` in [policy.deny] matches no installed plugin (did you mean `op.echo`?)" in problems
    assert "`op.nobody`" in problems
    assert "op.ecko" in caplog.text
