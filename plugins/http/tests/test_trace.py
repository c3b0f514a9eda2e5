"""The trace context of an effect is sent only where the grant allows it."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.ops import Level, OpFamily, op
from sideband_http._scope import TraceReceiverScope

pytestmark = pytest.mark.anyio

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Nothing(BaseModel):
    pass


@op("trace.nothing", level=Level.SAFE)
async def nothing(params: Nothing, ctx) -> None:
    """Do nothing."""


@hookimpl
def trace_parent(event):
    return [PARENT]


@pytest.fixture
def more_plugins():
    family = OpFamily("trace", (nothing,), scope=TraceReceiverScope)
    tracing = Plugin("hook", "tracing", SimpleNamespace(trace_parent=trace_parent))
    return [Plugin("op", "trace", SimpleNamespace(sideband_ops=lambda: family)), tracing]


def sent(server):
    """Return the trace context of each request that the server got."""
    return [request.headers.get("traceparent") for request in server.requests]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_trace_context_is_sent_where_the_grant_allows_it(host, server):
    grants = ["http:host=127.0.0.1", f"trace:host=127.0.0.1,port={server.port}"]
    await host.op("http.get", {"url": server.url("/echo")}, grants=grants)
    assert sent(server) == [PARENT]


@pytest.mark.parametrize("trace", [[], ["trace:host=example.org"], ["trace:host=127.0.0.1,scheme=https"]])
async def test_trace_context_is_not_sent_where_the_grant_does_not_allow_it(host, server, trace):
    await host.op("http.get", {"url": server.url("/echo")}, grants=["http:host=127.0.0.1", *trace])
    assert sent(server) == [None]


async def test_trace_context_is_not_sent_to_another_origin_that_a_redirect_names(host, server, other):
    grants = ["http:host=127.0.0.1", f"trace:host=127.0.0.1,port={server.port}"]
    url = server.url("/redirect")
    await host.op("http.get", {"url": url, "params": {"to": other.url("/echo")}}, grants=grants)
    assert (sent(server), sent(other)) == ([PARENT], [None])


async def test_trace_context_that_the_caller_passes_is_kept(host, server):
    own = PARENT.replace("4bf9", "0000")
    grants = ["http:host=127.0.0.1", "trace:host=127.0.0.1"]
    await host.op("http.get", {"url": server.url("/echo"), "headers": {"traceparent": own}}, grants=grants)
    assert sent(server) == [own]


async def test_requests_of_a_session_have_it_too(host, server):
    steps = [
        ("http.session_open", {}),
        ("http.session_request", {"session_id": "$session", "url": server.url("/echo")}),
    ]
    grants = ["http:host=127.0.0.1", "trace:host=127.0.0.1"]
    await host.op("flow.run", {"steps": steps}, grants=grants)
    assert sent(server) == [PARENT]
