"""What is wrong with a plugin is said with its own code, remedy and exit code wherever one of its ops is asked for."""

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


async def test_an_op_of_a_denied_plugin_names_the_line_and_ends_with_3(make_host, echo, outcomes):
    async with make_host(echo, settings={"policy": {"deny": {"op.echo": "too loud"}}}) as host:
        with pytest.raises(OpUnavailable, match="too loud") as caught:
            await host.op("echo.say", {})
    assert (caught.value.code, caught.value.exit_code) == ("plugin.denied", 3)
    assert outcomes()[0]["error"]["code"] == "plugin.denied"


async def test_an_op_of_a_broken_plugin_says_what_is_wrong_and_ends_with_5(make_host):
    async with make_host(Plugin("op", "echo", SimpleNamespace(sideband_op=1))) as host:
        with pytest.raises(OpUnavailable, match="sideband_ops") as caught:
            await host.op("echo.say", {})
    assert (caught.value.code, caught.value.exit_code) == ("plugin.invalid", 5)


async def test_an_op_of_no_family_is_only_not_there(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpNotFound, match=r"unknown op `eco\.say`"):
            await host.op("eco.say", {})


async def test_a_grant_for_a_family_that_is_not_there_can_not_be_used(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(CapabilityInvalid, match="did you mean `echo`"):
            await host.op("echo.say", {}, grants=["ecko"])


async def test_a_grant_for_a_denied_family_says_who_denies_it(make_host, echo):
    async with make_host(echo, settings={"policy": {"deny": {"op.echo": "too loud"}}}) as host:
        with pytest.raises(PluginDenied, match="too loud"):
            await host.op("echo.say", {}, grants=["echo"])


async def test_a_policy_about_plugins_that_are_not_there_is_a_problem_that_is_named(make_host, echo, caplog):
    policy = {"deny": {"op.ecko": "x"}, "conflicts": {"op.nobody": "y"}}
    async with make_host(echo, settings={"policy": policy}) as host:
        problems = " ".join(host.plugins.problems)
    assert "`op.ecko` in [policy.deny] matches no installed plugin (did you mean `op.echo`?)" in problems
    assert "`op.nobody`" in problems
    assert "op.ecko" in caplog.text
