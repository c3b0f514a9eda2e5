"""Secrets that become known between two turns, in messages that were sent before."""

import pytest
from sideband import Plugin

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t-canary-7f3a"


async def test_a_secret_that_becomes_known_between_two_turns_is_not_sent_again(stage):
    async with stage(["one", "two", "three"]) as agent:
        assert (await agent.invoke(f"my token is {VALUE}")).status == "completed"
        assert (await agent.invoke("go on")).status == "completed"
        agent.host.redactor.protect(VALUE, "token")
        result = await agent.invoke("and now?")
    assert (result.status, result.error["code"]) == ("failed", "op.egress")
    assert len(agent.scripted.requests) == 2
    assert VALUE not in str(result.error)


async def test_a_secret_that_becomes_known_during_a_run_is_redacted_in_what_follows(stage, kit):
    def before_agent_start(event, ctx):
        ctx.protect(VALUE, "token")

    hook = Plugin("hook", "late", kit.hooks(before_agent_start=before_agent_start))
    async with stage(["one", f"it is {VALUE}"], hook) as agent:
        await agent.invoke("hello")
        result = await agent.invoke("tell me")
    assert VALUE not in result.text
    assert "[redacted:token]" in result.text
