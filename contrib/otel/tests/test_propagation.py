"""The trace context is passed on where a grant allows it."""

import pytest
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


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
