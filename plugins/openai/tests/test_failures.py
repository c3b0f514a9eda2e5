import gc
import gzip
import socket
from contextlib import aclosing

import anyio
import pytest
from sideband.providers import (
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnreachable,
    StreamBroken,
    TextDelta,
)
from sideband_openai import _transport
from sideband_openai._access import Access
from sideband_openai._address import Address

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.fixture
def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def failure(client, kind=ProviderError, **fields):
    with pytest.raises(kind) as caught:
        await client.ask(**fields)
    return caught.value


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 429, 500, 502, 503, 529])
async def test_a_status_of_an_error_is_refused_with_what_the_server_says(client, server, status):
    server.reply({"error": {"message": "not like that"}}, status=status, kind="application/json")
    error = await failure(client, ProviderRefused)
    assert (error.status, error.code) == (status, "provider.refused")
    assert "not like that" in error.message
    assert "not like that" in error.body
    assert error.retryable == (status == 429 or status >= 500)


@pytest.mark.parametrize(
    "body",
    [
        {"error": "not like that"},
        {"message": "not like that"},
        {"detail": "not like that"},
        {"detail": [{"msg": "not like that"}]},
        [{"error": {"message": "not like that"}}],
        {"error": {"code": "not like that"}},
        b"not like that",
    ],
)
async def test_servers_tell_errors_in_many_forms(client, server, body):
    server.reply(body, status=400, kind="application/json")
    assert "not like that" in (await failure(client)).message


async def test_a_web_page_is_not_repeated_in_the_message(client, server):
    server.reply(b"<html>busy</html>", status=503, kind="text/html")
    error = await failure(client, ProviderRefused)
    assert "<html>" not in error.message
    assert "<html>" in error.body


async def test_when_to_come_again_is_kept(client, server):
    server.reply({}, status=429, headers=[("Retry-After", "7"), ("X-RateLimit-Reset-Requests", "1s"), ("X-Other", "1")])
    assert (await failure(client)).headers == {"retry-after": "7", "x-ratelimit-reset-requests": "1s"}


async def test_control_characters_of_a_server_are_not_shown(client, server):
    server.reply({"error": {"message": "a\x1b[31mb\nc\u202e"}}, status=400)
    assert "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}" in (await failure(client)).message


async def test_a_model_that_is_not_there_points_to_the_list(client, server):
    server.reply({"error": "no such model"}, status=404)
    assert "sideband models list" in (await failure(client)).hint


async def test_a_long_body_is_cut(client, server):
    server.reply(b"x" * 1_000_000, status=500, kind="text/plain")
    error = await failure(client)
    assert len(error.body) <= 64 << 10
    assert len(error.message) < 1_000


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(client, server, other, status):
    server.reply(b"", status=status, headers=[("Location", f"{other.base_url}/chat/completions")])
    error = await failure(client, ProviderRefused)
    assert other.base_url in error.hint
    assert not other.seen


async def test_a_web_page_is_no_answer(client, server):
    server.reply(b"<!doctype html><p>Sign in</p>", kind="text/html; charset=utf-8")
    error = await failure(client, ProviderRefused)
    assert not error.retryable
    assert "base_url" in error.hint


async def test_a_body_that_is_no_json_is_no_answer(client, server):
    server.reply(b"{", kind="application/json")
    await failure(client, StreamBroken)


async def test_a_json_text_that_is_no_object_is_no_answer(client, server):
    server.reply(b"[]", kind="application/json")
    await failure(client, ProviderRefused)


async def test_nobody_listens(open_client, closed_port):
    async with open_client(base_url=f"http://127.0.0.1:{closed_port}/v1") as client:
        error = await failure(client, ProviderUnreachable)
    assert (error.retryable, error.cause) == (True, "ConnectError")
    assert "is the server running" in error.hint


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"this is not http at all\r\n\r\n"])
async def test_a_server_that_breaks_off_before_its_answer_is_unreachable(client, server, data):
    server.raw(data)
    assert (await failure(client, ProviderUnreachable)).retryable


async def test_a_certificate_nobody_vouches_for(open_client, tls_server):
    async with open_client(base_url=tls_server.base_url) as client:
        error = await failure(client, ProviderUnreachable)
    assert not error.retryable
    assert "ca_file" in error.hint
    assert tls_server.seen == []


async def test_a_configured_authority_is_trusted(open_client, tls_server, ca_file, make):
    tls_server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    async with open_client(base_url=tls_server.base_url, ca_file=str(ca_file)) as client:
        assert (await client.ask()).text == "x"


@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"data: {}\n\n", HEAD + b": waiting\n\n"])
async def test_silence_is_a_timeout(open_client, server, data):
    server.hold_after(data)
    async with open_client(base_url=server.base_url, idle_timeout=0.2) as client:
        error = await failure(client, ProviderTimeout)
    assert (error.retryable, error.cause) == (True, "ReadTimeout")
    assert "idle_timeout" in error.hint


async def test_a_compressed_answer_is_not_unpacked(client, server):
    server.reply(gzip.compress(b"\0" * 10_000_000), headers=[("Content-Encoding", "gzip")])
    assert "compressed" in (await failure(client, StreamBroken)).message


async def test_a_compressed_error_keeps_its_status(client, server):
    server.reply(gzip.compress(b"busy"), status=429, headers=[("Content-Encoding", "gzip")])
    assert (await failure(client, ProviderRefused)).status == 429


async def test_bytes_that_are_no_text_are_malformed(client, server):
    server.reply(b"data: \xff\xfe\n\n")
    assert "UTF-8" in (await failure(client, StreamBroken)).message


async def test_an_endless_line_is_given_up(client, server):
    def endless(handler):
        handler.send(HEAD)
        while True:
            handler.send(b"data: " + b"x" * (1 << 20))

    server.script = endless
    with anyio.fail_after(30):
        assert "more than" in (await failure(client, StreamBroken)).message


async def test_an_endless_text_is_given_up(client, server, make):
    piece = make.events(make.chunk(content="x" * (1 << 20)), done=False)

    def endless(handler):
        handler.send(HEAD)
        while True:
            handler.send(piece)

    server.script = endless
    with anyio.fail_after(30):
        assert "16,777,216 characters" in (await failure(client, StreamBroken)).message


async def test_leaving_early_closes_the_connection(client, server, make):
    server.hold_after(HEAD + make.events(make.chunk(content="x"), done=False))
    provider, ctx = await client.provider()
    async with aclosing(provider.stream(make.request(), ctx)) as stream:
        assert await anext(stream) == TextDelta(text="x")
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    gc.collect()


@pytest.mark.parametrize("data", [b"", HEAD])
async def test_cancellation_closes_the_connection(client, server, data):
    server.hold_after(data)
    with anyio.move_on_after(0.2) as scope:
        await client.ask()
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    gc.collect()


async def test_a_stream_that_is_broken_leaves_nothing_to_the_garbage_collector(client, server):
    server.hold_after(HEAD + b"data: {\n\n")
    for _ in range(3):
        await failure(client, StreamBroken)
        gc.collect()


async def test_one_connection_serves_one_request_after_the_other(client, server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    for _ in range(3):
        await client.ask()
    assert len({one.connection for one in server.seen}) == 1


async def test_a_server_that_goes_on_after_done_keeps_nobody_waiting(client, server, make):
    server.hold_after(HEAD + make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    with anyio.fail_after(5):
        assert (await client.ask()).text == "x"
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)


async def test_requests_at_the_same_time_do_not_wait_for_each_other(client, server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    answers = []

    async def ask():
        answers.append((await client.ask()).text)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(ask)
    assert answers == ["x"] * 20


async def test_an_endless_answer_that_says_nothing_is_given_up(client, server, monkeypatch):
    monkeypatch.setattr(_transport, "_MOST_BYTES", 1 << 20)

    def endless(handler):
        handler.send(HEAD)
        while True:
            handler.send(b": still here\n\n" * 1_000)

    server.script = endless
    with anyio.fail_after(30):
        assert "more than 1,048,576 bytes" in (await failure(client, StreamBroken)).message


async def test_texts_that_end_an_answer_can_not_be_sent_to_responses(open_client, server):
    async with open_client(base_url=server.base_url, api="responses") as client:
        error = await failure(client, stop=("END",))
    assert "stop" in error.message
    assert server.seen == []


async def test_a_transport_is_used_again_only_after_a_whole_answer(server, make):
    transports = []

    def factory(tls):
        transports.append(_transport.httpx_transport(tls))
        return transports[-1]

    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    call = _transport.Call(Access("openai", Address.parse(server.base_url)), "POST", "/chat/completions", b"{}")
    connections = _transport.Connections(factory=factory)
    for leave_early in (False, False, True, False):
        async with connections.exchange(call) as answer:
            if not leave_early:
                await answer.text(10_000)
    await connections.aclose()
    assert len(transports) == 2


async def test_a_transport_that_comes_back_late_is_closed(server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    call = _transport.Call(Access("openai", Address.parse(server.base_url)), "POST", "/chat/completions", b"{}")
    connections = _transport.Connections()
    async with connections.exchange(call) as answer:
        await answer.text(10_000)
        await connections.aclose()
    assert connections._idle == {server.origin: []}
