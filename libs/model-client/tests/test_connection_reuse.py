"""Which library makes the connections, and how they are reused and closed."""

import sys

import aiohttp
import anyio
import httpx
import pytest
from sideband.providers import ProviderUnreachable
from sideband_model_client import (
    ServiceAddress,
    ServiceConnections,
    ServiceRequest,
    _connections,
)
from sideband_model_client.fast_transport import AiohttpTransport
from trio.testing import MockClock

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("library")]
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def test_request_that_lost_its_connection_is_not_sent_again(server, access):
    server.reply(b"x")
    server.send(then=True)
    request = ServiceRequest(access(server.base_url), "/models")
    async with ServiceConnections() as connections:
        async with connections.exchange(request) as reply:
            assert await reply.text(10) == "x"
            await reply.drain()
        with pytest.raises(ProviderUnreachable):
            async with connections.exchange(request):
                pass
    assert len(server.requests) == 2
    assert len({one.client for one in server.requests}) == 1


async def test_aiohttp_is_used_where_it_is_installed(library):
    made = ServiceConnections().transports(None)
    assert (type(made).__name__ == "AiohttpTransport") == (library == "aiohttp")
    await made.aclose()


@pytest.mark.parametrize("library", ["aiohttp"], indirect=True)
async def test_aiohttp_connects_to_the_host_in_punycode(library):
    """The resolver of Python maps the name that this one stands for to `fass.example`, another host."""
    transport = ServiceConnections().transports(None)
    assert isinstance(transport, AiohttpTransport)
    address = ServiceAddress.parse("https://xn--fa-hia.example")
    assert transport.destination_of(httpx.Request("GET", address.url)) == (address.host, None)
    await transport.aclose()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_httpx_is_used_on_trio():
    assert isinstance(ServiceConnections().transports(None), httpx.AsyncHTTPTransport)


@pytest.mark.parametrize("library", ["aiohttp"], indirect=True)
@pytest.mark.parametrize(
    "hide",
    [
        lambda patch: patch.setitem(sys.modules, "aiohttp", None),
        lambda patch: patch.setattr(aiohttp, "__version__", "3.9.5"),
    ],
    ids=["missing", "old"],
)
async def test_httpx_is_used_if_aiohttp_is_missing_or_old(monkeypatch, library, hide):
    hide(monkeypatch)
    monkeypatch.delitem(sys.modules, "sideband_model_client.fast_transport")
    _connections._has_aiohttp.cache_clear()
    made = ServiceConnections().transports(None)
    _connections._has_aiohttp.cache_clear()
    assert isinstance(made, httpx.AsyncHTTPTransport)


@BOTH_BACKENDS
async def test_connection_is_reused_for_the_next_request(server, access):
    server.reply(b"x")
    async with ServiceConnections() as connections:
        for _ in range(3):
            async with connections.exchange(ServiceRequest(access(server.base_url), "/chat", {})) as reply:
                assert await reply.text(10_000) == "x"
    assert len({one.client for one in server.requests}) == 1


@BOTH_BACKENDS
async def test_a_hundred_sessions_open_a_hundred_connections_however_many_requests_they_send(server, access):
    server.reply(b"x")
    request = ServiceRequest(access(server.base_url), "/chat", {})

    async def send():
        nonlocal waiting
        async with connections.exchange(request) as reply:
            assert await reply.text(10) == "x"
            waiting += 1
            if waiting == 100:
                all_sent.set()
            await all_sent.wait()

    async with ServiceConnections() as connections:
        for _ in range(3):
            waiting, all_sent = 0, anyio.Event()
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(send)
    opened = len({one.client for one in server.requests})
    assert opened == 100, "keep as many idle connections as there are sessions"


@pytest.fixture
def slow_service(access):
    """Return connections to a service that answers after a second, a function that asks it, and what was closed."""
    closed = []

    class Transport(httpx.MockTransport):
        async def aclose(self):
            closed.append(self)

    async def ask():
        async with connections.exchange(ServiceRequest(access("http://models.example.org"), "/chat", {})) as reply:
            await anyio.sleep(1)
            await reply.text(10)

    connections = ServiceConnections(transports=lambda tls: Transport(lambda request: httpx.Response(200, text="x")))
    return connections, ask, closed


async def at_once(number, ask):
    async with anyio.create_task_group() as tasks:
        for _ in range(number):
            tasks.start_soon(ask)


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_connections_that_are_not_used_any_more_are_closed(slow_service):
    connections, ask, closed = slow_service
    async with connections:
        await at_once(10, ask)
        for _ in range(20):
            await ask()
        assert not closed
        for _ in range(12):
            await ask()
        assert len(closed) == 9, "all but the connection that is in use"


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_number_of_idle_connections_is_limited(slow_service):
    connections, ask, closed = slow_service
    async with connections:
        await at_once(300, ask)
        assert len(closed) == 300 - 256


@BOTH_BACKENDS
async def test_concurrent_requests_do_not_wait_for_each_other(server, access):
    server.reply(b"x")
    answers = []
    async with ServiceConnections() as connections:

        async def one():
            async with connections.exchange(ServiceRequest(access(server.base_url), "/chat", {})) as reply:
                answers.append(await reply.text(10))

        async with anyio.create_task_group() as group:
            for _ in range(120):
                group.start_soon(one)
    assert answers == ["x"] * 120


@BOTH_BACKENDS
@pytest.mark.parametrize("rest", ["stalls", "closes"])
async def test_drain_ignores_errors_after_the_end_of_the_protocol(server, access, rest):
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: x\n\n"
    (server.hold if rest == "stalls" else server.send)(data)
    request = ServiceRequest(access(server.base_url), "/chat", {})
    async with ServiceConnections() as connections, connections.exchange(request) as reply:
        assert await anext(reply.chunks) == b"data: x\n\n"
        with anyio.fail_after(5):
            await reply.drain()
    assert rest == "closes" or await anyio.to_thread.run_sync(server.closed.wait, 10)


@BOTH_BACKENDS
async def test_drain_waits_briefly_so_that_the_connection_is_reused(server, access):
    def answer(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        exchange.sleep(0.02)
        exchange.send(b"0\r\n\r\n")
        return True

    server.answer(answer)
    async with ServiceConnections() as connections:
        for _ in range(2):
            async with connections.exchange(ServiceRequest(access(server.base_url), "/chat", {})) as reply:
                assert await anext(reply.chunks) == b"x"
                await reply.drain()
    assert len({one.client for one in server.requests}) == 1


async def test_transport_is_reused_only_after_a_complete_response(server, access):
    transports = []

    def factory(tls):
        assert tls is None
        transports.append(httpx.AsyncHTTPTransport(trust_env=False))
        return transports[-1]

    server.reply(b"data: x\n\n")
    request = ServiceRequest(access(server.base_url), "/chat", {})
    async with ServiceConnections(transports=factory) as connections:
        for leave_early in (False, False, True, False):
            async with connections.exchange(request) as reply:
                if not leave_early:
                    await reply.text(10_000)
    assert len(transports) == 2


async def test_transport_released_after_aclose_is_closed(server, access):
    closed = []

    class Watched(httpx.AsyncHTTPTransport):
        async def aclose(self):
            closed.append(self)
            await super().aclose()

    server.reply(b"data: x\n\n")
    connections = ServiceConnections(transports=lambda tls: Watched(trust_env=False))
    async with connections.exchange(ServiceRequest(access(server.base_url), "/chat", {})) as reply:
        await reply.text(10_000)
        await connections.aclose()
        assert closed == []
    assert len(closed) == 1
