"""A trace of the program that started the host, such as a CI job, is continued."""

import pytest
from sideband import Plugin, hookimpl
from sideband.approvals import Approval
from sideband.hooks import Ask

pytestmark = pytest.mark.anyio

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


class Careful:
    @staticmethod
    @hookimpl
    def op_call(event):
        return Ask("Really?")


async def test_runs_and_their_effects_are_a_part_of_it(open_agent, sending, monkeypatch):
    monkeypatch.setenv("TRACEPARENT", PARENT)
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    run = sending.named("invoke_agent")
    assert (run.trace, run.parent) == (TRACE, SPAN)
    assert sending.named("chat test").trace == run.trace


async def test_effects_and_approvals_without_an_agent_are_a_part_of_it(open_host, sending, monkeypatch):
    async def approver(request):
        return Approval("allow")

    monkeypatch.setenv("TRACEPARENT", PARENT)
    async with open_host(Plugin("guard", "careful", Careful), approver=approver) as host:
        await host.op("llm.models", {})
    spans = [sending.named("llm.models"), sending.named("approval")]
    assert [(span.trace, span.parent) for span in spans] == [(TRACE, SPAN)] * 2


@pytest.mark.parametrize(("sampler", "is_sent"), [(None, False), ("parentbased_always_on", False), ("always_on", True)])
async def test_sampler_decides_whether_it_follows_that_the_trace_is_not_sampled(
    open_host, sending, monkeypatch, sampler, is_sent
):
    monkeypatch.setenv("TRACEPARENT", PARENT[:-1] + "0")
    if sampler is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    async with open_host() as host:
        found = await host.op("trace.parent", {"host": "a.example"})
    assert found.startswith(f"00-{TRACE}-")
    assert found[-2:] == ("01" if is_sent else "00")
    assert [span.trace for span in sending.spans] == [TRACE] * is_sent


async def test_sampler_follows_that_the_trace_is_sampled(open_host, sending, monkeypatch):
    monkeypatch.setenv("TRACEPARENT", PARENT)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    async with open_host() as host:
        await host.op("trace.parent", {"host": "a.example"})
    assert [span.name for span in sending.spans] == ["trace.parent"]


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "no context",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{PARENT}\n",
        PARENT.upper(),
        f"ff{PARENT[2:]}",
        f"{PARENT}-more",
    ],
)
async def test_invalid_context_is_ignored(open_agent, sending, monkeypatch, wrong):
    monkeypatch.setenv("TRACEPARENT", wrong)
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    run = sending.named("invoke_agent")
    assert run.parent == ""
    assert run.trace not in {TRACE, "0" * 32}
