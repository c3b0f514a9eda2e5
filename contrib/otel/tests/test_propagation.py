"""The trace context is passed on where a grant allows it."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.ops import Level, OpContext, OpDenied, OpFamily, op
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@op("flow.trace", level=Level.SAFE)
async def trace(params: Nothing, ctx: OpContext) -> str | None:
    return await ctx.trace_parent()


@tool("follow")
async def follow(params: Nothing, ctx) -> str:
    """Return the trace context of an effect."""
    return await ctx.dispatch("flow.trace", {})


async def test_request_continues_the_trace_where_the_grant_allows_it(open_host, sending, http_server):
    async with open_host() as host:
        grants = ["http:host=127.0.0.1", "trace:host=127.0.0.1"]
        await host.op("http.get", {"url": http_server.url("/echo")}, grants=grants)
    span = sending.named("http.get")
    (request,) = http_server.requests
    assert request.headers["traceparent"] == f"00-{span.trace}-{span.id}-01"


async def test_request_does_not_show_that_it_is_traced_without_a_grant(open_host, sending, http_server):
    async with open_host() as host:
        await host.op("http.get", {"url": http_server.url("/echo")}, grants=["http:host=127.0.0.1"])
    assert "traceparent" not in http_server.requests[0].headers


async def test_trace_that_is_not_sampled_is_passed_on_as_such(open_host, sending, http_server, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with open_host() as host:
        grants = ["http:host=127.0.0.1", "trace:host=127.0.0.1"]
        await host.op("http.get", {"url": http_server.url("/echo")}, grants=grants)
    assert http_server.requests[0].headers["traceparent"].endswith("-00")
    assert sending.spans == []


async def test_skill_gets_the_trace_context_for_a_receiver_that_its_grant_names(open_host, sending):
    async with open_host() as host:
        found = await host.op("trace.parent", {"host": "Queue.example"}, grants=["trace:host=queue.example"])
        with pytest.raises(OpDenied):
            await host.op("trace.parent", {"host": "other.example"}, grants=["trace:host=queue.example"])
        with pytest.raises(OpDenied):
            await host.op("trace.parent", {"host": "queue.example"}, grants=["trace:host=queue.example,port=443"])
    span = next(span for span in sending.spans if not span.failed)
    assert found == f"00-{span.trace}-{span.id}-01"


async def test_there_is_no_trace_context_if_nothing_is_sent(open_host):
    async with open_host() as host:
        assert await host.op("trace.parent", {"host": "queue.example"}) is None


async def test_effect_of_an_agent_has_a_trace_context_in_the_trace_of_its_run(open_agent, sending):
    sessions = []

    @hookimpl
    def trace_parent(event, ctx):
        sessions.append(ctx.session.id)

    plugins = [
        Plugin("op", "flow", SimpleNamespace(sideband_ops=lambda: OpFamily("flow", (trace,)))),
        Plugin("tool", "follow", follow),
        Plugin("hook", "watching", SimpleNamespace(trace_parent=trace_parent)),
    ]
    async with open_agent([Turn(tool_calls=[("follow", {})]), "done"], *plugins) as agent:
        result = await agent.invoke("go on")
    (found,) = [message.text for message in result.messages if message.role == "tool"]
    span = sending.named("flow.trace")
    assert found == f"00-{span.trace}-{span.id}-01"
    assert span.trace == sending.named("invoke_agent").trace
    assert sessions == [result.session]  # the hook gets the context of the agent
