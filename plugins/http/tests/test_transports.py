"""The guarantees of every transport."""

import asyncio
import sys

import aiohttp
import anyio
import pytest
from sideband.ops import OpUnavailable
from sideband_http import HttpTimeout, ProtocolFailed, TransportUnavailable
from sideband_http._transport._aiohttp import PinnedAiohttpTransport
from sideband_http._transport._choice import transport_named
from sideband_http._transport._interface import TransportOptions
from sideband_http._transport._trust import Trust

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
BOTH = pytest.mark.parametrize(
    ("anyio_backend", "transport"), [("asyncio", "aiohttp"), ("asyncio", "httpx"), ("trio", "httpx")]
)


@BOTH
async def test_get_is_sent_with_exactly_these_headers(host, raw_server):
    raw_server.send(LAST)
    await host.op("http.get", {"url": raw_server.url("/a?b=1"), "headers": {"X-Mine": "1"}, "auth": "bearer"})
    head = raw_server.requests[0].head.decode()
    line, *headers = head.strip().split("\r\n")
    assert line == "GET /a?b=1 HTTP/1.1"
    assert {one.partition(":")[0].lower(): one.partition(": ")[2] for one in headers} == {
        "host": raw_server.origin.removeprefix("http://"),
        "user-agent": "sideband/0.1.0",
        "accept": "*/*",
        "accept-encoding": "gzip, deflate",
        "x-mine": "1",
        "authorization": "Bearer s3cr3t-token-value",
    }


@BOTH
@pytest.mark.parametrize("body", [b"", b"short", b"long" * 1_000_000])
async def test_body_is_sent_completely_with_its_length(host, raw_server, body):
    raw_server.send(LAST)
    await host.op("http.post", {"url": raw_server.url(), "body": body})
    head, received = raw_server.requests[0].head, raw_server.requests[0].body
    assert received == body
    assert head.lower().count(b"content-length: %d" % len(body)) == 1
    assert b"transfer-encoding" not in head.lower()


@BOTH
async def test_requests_share_a_connection(host, raw_server):
    raw_server.reply()
    for _ in range(3):
        await host.op("http.get", {"url": raw_server.url()})
    assert len(raw_server.requests) == 3
    assert len({request.client for request in raw_server.requests}) == 1


@BOTH
@pytest.mark.parametrize("op", ["http.get", "http.put", "http.delete", "http.post"])
async def test_request_is_not_resent_after_a_lost_connection(host, raw_server, op):
    with pytest.raises(ProtocolFailed) as caught:
        await host.op(op, {"url": raw_server.url()})
    assert caught.value.retryable == (op != "http.post")
    assert len(raw_server.requests) == 1


@BOTH
async def test_request_on_a_kept_connection_is_not_resent(host, raw_server):
    raw_server.reply()
    raw_server.send(then=True)
    await host.op("http.get", {"url": raw_server.url()})
    with pytest.raises(ProtocolFailed):
        await host.op("http.get", {"url": raw_server.url()})
    assert len(raw_server.requests) == 2


@BOTH
async def test_environment_is_ignored(host, raw_server, other, monkeypatch, tmp_path):
    raw_server.send(LAST)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.origin)
    monkeypatch.delenv("no_proxy", raising=False)
    await host.op("http.get", {"url": raw_server.url()})
    assert other.requests == []
    assert b"authorization" not in raw_server.requests[0].head.lower()


@BOTH
async def test_cookies_are_not_kept_between_requests(host, raw_server):
    raw_server.send(LAST.replace(b"\r\n", b"\r\nSet-Cookie: a=1\r\n", 1))
    for _ in range(2):
        await host.op("http.get", {"url": raw_server.url()})
    assert b"cookie" not in raw_server.requests[1].head.lower()


@BOTH
async def test_server_that_does_not_read_is_a_timeout_and_leaves_no_task(host, anyio_backend):
    await host.op("http.session_open", {})
    before = _tasks(anyio_backend)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        with pytest.raises(HttpTimeout):
            await host.op("http.post", {"url": url, "body": b"x" * 8_000_000, "timeout": 0.3})
    assert _tasks(anyio_backend) <= before


def _tasks(anyio_backend):
    return asyncio.all_tasks() if anyio_backend == "asyncio" else set()


async def options(*, http2):
    return TransportOptions(tls=await Trust().context(http2=http2), http2=http2, max_connections=1)


@pytest.mark.parametrize(
    ("name", "http2", "fast"),
    [("auto", False, True), ("auto", True, False), ("aiohttp", True, True), ("httpx", False, False)],
)
async def test_configuration_selects_the_transport(name, http2, fast):
    made = transport_named(name)(await options(http2=http2))
    assert isinstance(made, PinnedAiohttpTransport) is fast
    await made.aclose()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_auto_selects_httpx_on_trio():
    made = transport_named("auto")(await options(http2=False))
    assert not isinstance(made, PinnedAiohttpTransport)
    await made.aclose()


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_aiohttp_on_trio_is_rejected_at_the_first_request(open_host, server):
    async with open_host(transport="aiohttp") as host:
        with pytest.raises(OpUnavailable, match="asyncio"):
            await host.op("http.get", {"url": server.url("/echo")})
    assert server.requests == []


@pytest.mark.parametrize(
    ("hide", "problem"),
    [
        (lambda patch: patch.setitem(sys.modules, "aiohttp", None), "not installed"),
        (lambda patch: patch.setattr(aiohttp, "__version__", "3.9.5"), r"aiohttp 3\.9\.5 is installed"),
    ],
    ids=["missing", "old"],
)
async def test_missing_or_old_aiohttp_is_rejected_or_not_selected(monkeypatch, hide, problem):
    hide(monkeypatch)
    monkeypatch.delitem(sys.modules, "sideband_model_client.fast_transport")
    monkeypatch.delitem(sys.modules, "sideband_http._transport._aiohttp")
    monkeypatch.delattr("sideband_http._transport._aiohttp")
    with pytest.raises(TransportUnavailable, match=problem) as caught:
        transport_named("aiohttp")
    assert caught.value.code == "http.transport"
    assert "sideband-http[fast]" in caught.value.hint
    made = transport_named("auto")(await options(http2=False))
    assert not isinstance(made, PinnedAiohttpTransport)
    await made.aclose()
