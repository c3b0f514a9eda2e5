"""Requests over real connections: what is sent, what is received, and which errors they raise."""

import gzip
import json
import socket
from contextlib import aclosing

import anyio
import httpx
import pytest
from sideband.providers import ProviderRefused, ProviderTimeout, ProviderUnreachable, StreamBroken
from sideband_model_client import (
    ServiceConnections,
    ServiceReply,
    ServiceRequest,
    read_events,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("library")]
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.fixture
def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def failure(ask, base_url, kind, **fields):
    with pytest.raises(kind) as caught:
        await ask(base_url, **fields)
    return caught.value


async def test_request_with_a_body_posts_json(server, access):
    server.reply(b"data: x\n\n")
    request = ServiceRequest(access(server.base_url, headers={"x-title": "team"}), "/chat?a=1", {"text": "ä\ud83d"})
    async with ServiceConnections() as connections, connections.exchange(request) as reply:
        assert (reply.status, reply.kind) == (200, "text/event-stream")
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", "/v1/chat?a=1")
    assert json.loads(seen.body) == {"text": "ä\N{REPLACEMENT CHARACTER}"}
    assert {name: seen.headers[name] for name in ("accept", "accept-encoding", "content-type", "x-title")} == {
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "x-title": "team",
    }
    assert "cookie" not in seen.headers


async def test_request_without_a_body_is_a_get(server, access):
    server.reply({"data": []}, kind="Application/JSON; charset=utf-8")
    request = ServiceRequest(access(server.base_url), "/models")
    async with ServiceConnections() as connections, connections.exchange(request) as reply:
        await reply.check()
        assert reply.kind == "application/json"
        assert json.loads(await reply.text(1_000)) == {"data": []}
    assert (server.requests[0].method, server.requests[0].body) == ("GET", b"")
    assert server.requests[0].headers["accept"] == "application/json"
    assert "content-type" not in server.requests[0].headers


async def test_repr_of_a_request_shows_neither_key_nor_body(access):
    request = ServiceRequest(
        access("http://localhost", headers={"x": "sk-1"}, secrets=("sk-1",)), "/", {"a": "private"}
    )
    assert "sk-1" not in repr(request)
    assert "private" not in repr(request)


async def test_cookies_are_not_kept(server, ask, access):
    server.reply(b"", headers=[("Set-Cookie", "a=b")])
    named = server.base_url.replace("127.0.0.1", "localhost")  # some cookie jars ignore addresses
    async with ServiceConnections() as connections:
        for _ in range(2):
            async with connections.exchange(ServiceRequest(access(named), "/chat")) as reply:
                await reply.text(10)
    assert "cookie" not in server.requests[1].headers


async def test_proxies_and_certificates_from_the_environment_are_ignored(server, ask, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    server.reply(b"direct")
    assert await ask(server.base_url) == "direct"


@BOTH_BACKENDS
@pytest.mark.parametrize("status", [201, 204, 206, 400, 401, 404, 429, 500, 529])
async def test_status_other_than_200_is_refused_with_the_message_of_the_server(server, ask, status):
    body = b"" if status == 204 else {"error": {"message": "not like that"}}
    server.reply(body, status=status, kind="application/json", headers=[("Retry-After", "7")])
    error = await failure(ask, server.base_url, ProviderRefused)
    assert error.status == status
    assert error.headers == {"retry-after": "7"}
    assert status == 204 or "not like that" in error.message


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(server, other, ask, status):
    server.reply(b"", status=status, headers=[("Location", other.base_url)])
    error = await failure(ask, server.base_url, ProviderRefused)
    assert other.base_url in error.hint
    assert not other.requests


async def test_long_error_body_is_truncated(server, ask):
    server.reply(b"x" * 1_000_000, status=500, kind="text/plain")
    error = await failure(ask, server.base_url, ProviderRefused)
    assert len(error.body) <= 64 << 10


async def test_endless_error_body_is_truncated(server, ask):
    server.flood(b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\n\r\n", b"x" * 10_000)
    assert len((await failure(ask, server.base_url, ProviderRefused)).body) <= 64 << 10


async def test_truncated_error_keeps_its_status(server, ask):
    server.send(b"HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\nslow down")
    error = await failure(ask, server.base_url, ProviderRefused)
    assert (error.status, error.headers, error.body) == (429, {"retry-after": "7"}, "slow down")


async def test_stalled_error_keeps_its_status(server, ask):
    server.hold(b"HTTP/1.1 503 X\r\nContent-Length: 100\r\n\r\nbusy")
    assert (await failure(ask, server.base_url, ProviderRefused, idle_timeout=0.2)).status == 503


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "Application/XHTML+xml"])
async def test_web_page_is_refused(server, ask, kind):
    server.reply(b"<!doctype html><p>Sign in</p>", kind=kind)
    error = await failure(ask, server.base_url, ProviderRefused)
    assert (error.status, error.retryable) == (200, False)
    assert "base_url" in error.hint
    assert "Sign in" in error.body


@pytest.mark.parametrize("encoding", ["gzip", " GZIP "])
async def test_compressed_response_is_not_decompressed(server, ask, encoding):
    server.reply(gzip.compress(b"\0" * 10_000_000), headers=[("Content-Encoding", encoding)])
    assert "compressed (`gzip`)" in (await failure(ask, server.base_url, StreamBroken)).message


async def test_compressed_error_keeps_its_status(server, ask):
    server.reply(gzip.compress(b"busy"), status=429, headers=[("Content-Encoding", "gzip")])
    error = await failure(ask, server.base_url, ProviderRefused)
    assert (error.status, error.body) == (429, "")


@pytest.mark.parametrize("encoding", ["identity", ""])
async def test_response_with_identity_encoding_is_read(server, ask, encoding):
    server.reply(b"x", headers=[("Content-Encoding", encoding)])
    assert await ask(server.base_url) == "x"


@BOTH_BACKENDS
async def test_refused_connection_is_unreachable(ask, closed_port):
    error = await failure(ask, f"http://127.0.0.1:{closed_port}", ProviderUnreachable)
    assert (error.retryable, error.cause) == (True, "ConnectError")
    assert f"http://127.0.0.1:{closed_port}: " in error.message
    assert "server is running" in error.hint


async def test_unknown_host_is_unreachable(ask):
    error = await failure(ask, "http://models.invalid", ProviderUnreachable)
    assert error.retryable
    assert "`base_url`" in error.hint


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"220 welcome to this mail server\r\n"])
async def test_connection_closed_before_the_response_is_unreachable(server, ask, data):
    server.send(data)
    error = await failure(ask, server.base_url, ProviderUnreachable)
    assert (error.retryable, error.cause) == (True, "RemoteProtocolError")


async def test_url_that_is_too_long_is_unreachable(server, access):
    request = ServiceRequest(access(server.base_url), f"/{'x' * 100_000}")
    async with ServiceConnections() as connections:
        with pytest.raises(ProviderUnreachable) as caught:
            async with connections.exchange(request):
                pass
    assert caught.value.cause == "InvalidURL"


@BOTH_BACKENDS
async def test_untrusted_certificate_ends_the_call(tls_server, ask):
    error = await failure(ask, tls_server.base_url, ProviderUnreachable)
    assert not error.retryable
    assert f"secure connection to {tls_server.origin}" in error.message
    assert "`ca_file` in [plugins.acme]" in error.hint
    assert tls_server.requests == []


@BOTH_BACKENDS
async def test_configured_authority_is_trusted(tls_server, ask, ca_file):
    tls_server.reply(b"safe")
    assert await ask(tls_server.base_url, ca_file=ca_file) == "safe"


async def test_tilde_in_ca_file_is_expanded(tls_server, ask, ca_file, monkeypatch):
    monkeypatch.setenv("HOME", str(ca_file.parent))
    tls_server.reply(b"safe")
    assert await ask(tls_server.base_url, ca_file=type(ca_file)("~/ca.pem")) == "safe"


@BOTH_BACKENDS
@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(b"", "waiting for a response", id="before the headers"),
        pytest.param(HEAD, "more of the response", id="after the headers"),
        pytest.param(HEAD + b"data: {}\n\n", "more of the response", id="within the body"),
    ],
)
async def test_silent_server_is_a_timeout(server, ask, data, what):
    server.hold(data)
    error = await failure(ask, server.base_url, ProviderTimeout, idle_timeout=0.2)
    assert (error.retryable, error.cause) == (True, "ReadTimeout")
    assert f"{server.origin} timed out after 0.2 s" in error.message
    assert what in error.message
    assert "`idle_timeout` in [plugins.acme]" in error.hint


async def test_connect_timeout_names_its_setting(access):
    def slow(request):
        raise httpx.ConnectTimeout("", request=request)

    request = ServiceRequest(access("http://models.example.org"), "/chat", {}, connect_timeout=3)
    async with ServiceConnections(transports=lambda tls: httpx.MockTransport(slow)) as connections:
        with pytest.raises(ProviderTimeout) as caught:
            async with connections.exchange(request):
                pass
    assert "http://models.example.org timed out after 3 s (connecting)" in caught.value.message
    assert "`connect_timeout`" in caught.value.hint


@BOTH_BACKENDS
async def test_truncated_response_is_broken(server, ask):
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    error = await failure(ask, server.base_url, StreamBroken)
    assert (error.retryable, error.cause) == (True, "RemoteProtocolError")
    assert "connection closed" in error.message


async def test_unexpected_exception_is_not_converted(access):
    def fail(request):
        raise ZeroDivisionError

    async with ServiceConnections(transports=lambda tls: httpx.MockTransport(fail)) as connections:
        with pytest.raises(ZeroDivisionError):
            async with connections.exchange(ServiceRequest(access("http://localhost"), "/chat")):
                pass


async def test_endless_response_is_aborted(server, ask, access):
    server.flood(HEAD, b": still here\n\n" * 1_000)
    with anyio.fail_after(30):
        error = await failure(ask, server.base_url, StreamBroken, largest=1 << 20, most=1 << 30)
    assert "1,048,576 bytes" in error.message
    assert ServiceRequest(access(server.base_url), "/chat").largest == 64 << 20


async def test_endless_line_is_aborted(server, access):
    server.flood(HEAD, b"data: " + b"x" * (1 << 20))

    async def read():
        request = ServiceRequest(access(server.base_url), "/chat", {})
        async with (
            ServiceConnections() as connections,
            connections.exchange(request) as reply,
            aclosing(read_events(reply.chunks)) as events,
        ):
            return [event async for event in events]

    with anyio.fail_after(30), pytest.raises(ValueError, match="a line exceeds"):
        await read()


@BOTH_BACKENDS
async def test_leaving_early_closes_the_connection(server, access, collect_garbage):
    server.hold(HEAD + b"data: x\n\n")
    request = ServiceRequest(access(server.base_url), "/chat", {})
    async with ServiceConnections() as connections, connections.exchange(request) as reply:
        assert await anext(reply.chunks)
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    collect_garbage()


@BOTH_BACKENDS
@pytest.mark.parametrize("data", [b"", HEAD])
async def test_cancellation_closes_the_connection(server, ask, data, collect_garbage):
    server.hold(data)
    with anyio.move_on_after(0.2) as scope:
        await ask(server.base_url)
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    collect_garbage()


@BOTH_BACKENDS
async def test_exception_in_the_reader_leaves_nothing_to_the_garbage_collector(server, access, collect_garbage):
    server.hold(HEAD + b"data: x\n\n")

    async def read():
        async with connections.exchange(ServiceRequest(access(server.base_url), "/chat", {})) as reply:
            await anext(reply.chunks)
            raise ZeroDivisionError

    async with ServiceConnections() as connections:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await read()
            collect_garbage()


async def test_reply_can_be_constructed_in_tests_of_a_provider(access):
    async def chunks():
        yield b"data: x\n\n"

    async with aclosing(chunks()) as body:
        reply = ServiceReply(access("http://localhost"), 200, {"content-type": "text/event-stream"}, body)
        await reply.check()
        assert await reply.text(100) == "data: x\n\n"


@pytest.mark.parametrize(
    ("pieces", "kind", "is_json"),
    [
        ([b'{"a": 1}'], "text/plain", True),
        ([b"\n", b" ", b"[", b"]"], "", True),
        ([b"\xef\xbb\xbf{}"], "application/json", True),
        ([b"{"], "text/event-stream", True),
        ([b"da", b"ta", b": x\n\n"], "text/plain", False),
        ([b": waiting\n\n"], "application/json", False),
        ([b"anything"], "text/event-stream", False),
        ([], "application/json", False),
    ],
)
async def test_beginning_of_a_body_decides_whether_it_is_json(access, pieces, kind, is_json):
    async def chunks():
        for piece in pieces:
            yield piece

    async with aclosing(chunks()) as body:
        reply = ServiceReply(access("http://localhost"), 200, {"content-type": kind}, body)
        assert await reply.is_json() == is_json
        assert await reply.text(100) == b"".join(pieces).decode()


async def test_body_that_is_neither_json_nor_events_is_refused_for_good(access):
    async def chunks():
        yield b"all is well"

    async with aclosing(chunks()) as body:
        reply = ServiceReply(access("http://localhost"), 200, {"content-type": "text/plain"}, body)
        with pytest.raises(ProviderRefused, match="text/plain") as caught:
            await reply.is_json()
    assert not caught.value.retryable
    assert caught.value.body == "all is well"


async def test_endless_whitespace_is_not_searched_for_json(access):
    async def chunks():
        while True:
            yield b" "

    async with aclosing(chunks()) as body:
        assert not await ServiceReply(access("http://localhost"), 200, {}, body).is_json()
