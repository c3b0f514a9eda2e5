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
from sideband_openai import _provider

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

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


@pytest.mark.parametrize("status", [400, 402, 403, 404, 413, 422, 429, 500, 502, 503, 529])
async def test_error_status_is_refused_with_the_message_of_the_server(client, server, status):
    server.reply({"error": {"message": "not like that"}}, status=status, kind="application/json")
    error = await failure(client, ProviderRefused)
    assert (error.status, error.code) == (status, "provider.refused")
    assert "not like that" in error.message
    assert "not like that" in error.body
    assert error.retryable == (status == 429 or status >= 500)


async def test_hint_for_an_unknown_model_names_the_list_command(client, server):
    server.reply({"error": "no such model"}, status=404)
    assert "sideband models list" in (await failure(client)).hint


async def test_web_page_is_refused(client, server):
    server.reply(b"<!doctype html><p>Sign in</p>", kind="text/html; charset=utf-8")
    error = await failure(client, ProviderRefused)
    assert not error.retryable
    assert "base_url" in error.hint


async def test_invalid_json_body_is_broken(client, server):
    server.reply(b"{", kind="application/json")
    await failure(client, StreamBroken)


async def test_json_body_that_is_not_an_object_is_refused(client, server):
    server.reply(b"[]", kind="application/json")
    await failure(client, ProviderRefused)


async def test_refused_connection_is_unreachable(open_client, closed_port):
    async with open_client(base_url=f"http://127.0.0.1:{closed_port}/v1") as client:
        error = await failure(client, ProviderUnreachable)
    assert (error.retryable, error.cause) == (True, "ConnectError")
    assert "server is running" in error.hint


async def test_configured_authority_is_trusted(open_client, tls_server, make):
    tls_server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    async with open_client(base_url=tls_server.base_url, ca_file=str(tls_server.ca_file)) as client:
        assert (await client.ask()).text == "x"


@BOTH_BACKENDS
@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"data: {}\n\n", HEAD + b": waiting\n\n"])
async def test_silent_server_is_a_timeout(open_client, server, data):
    server.hold(data)
    async with open_client(base_url=server.base_url, idle_timeout=0.2) as client:
        error = await failure(client, ProviderTimeout)
    assert (error.retryable, error.cause) == (True, "ReadTimeout")
    assert "idle_timeout" in error.hint


async def test_invalid_utf_8_is_malformed(client, server):
    server.reply(b"data: \xff\xfe\n\n")
    assert "UTF-8" in (await failure(client, StreamBroken)).message


async def test_endless_line_is_aborted(client, server):
    server.flood(HEAD, b"data: " + b"x" * (1 << 20))
    with anyio.fail_after(30):
        assert "a line exceeds" in (await failure(client, StreamBroken)).message


async def test_endless_text_is_aborted(client, server, make):
    piece = make.events(make.chunk(content="x" * (1 << 20)), done=False)
    server.flood(HEAD, piece)
    with anyio.fail_after(30):
        assert "16,777,216 characters" in (await failure(client, StreamBroken)).message


@BOTH_BACKENDS
async def test_leaving_early_closes_the_connection(client, server, make, collect_garbage):
    server.hold(HEAD + make.events(make.chunk(content="x"), done=False))
    provider, ctx = await client.provider()
    async with aclosing(provider.stream(make.request(), ctx)) as stream:
        assert await anext(stream) == TextDelta(text="x")
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    collect_garbage()


@BOTH_BACKENDS
@pytest.mark.parametrize("data", [b"", HEAD])
async def test_cancellation_closes_the_connection(client, server, data, collect_garbage):
    server.hold(data)
    with anyio.move_on_after(0.2) as scope:
        await client.ask()
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)
    collect_garbage()


@BOTH_BACKENDS
async def test_broken_stream_leaves_nothing_to_the_garbage_collector(client, server, collect_garbage):
    server.hold(HEAD + b"data: {\n\n")
    for _ in range(3):
        await failure(client, StreamBroken)
        collect_garbage()


@BOTH_BACKENDS
async def test_stream_ends_at_done_even_if_the_body_does_not(client, server, make):
    server.hold(HEAD + make.events(make.chunk(content="x"), make.chunk(finish="stop")))
    with anyio.fail_after(5):
        assert (await client.ask()).text == "x"
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)


async def test_endless_stream_without_content_is_aborted(client, server, monkeypatch):
    monkeypatch.setattr(_provider, "_MAX_STREAM_BYTES", 1 << 20)
    server.flood(HEAD, b": still here\n\n" * 1_000)
    with anyio.fail_after(30):
        assert "1,048,576 bytes" in (await failure(client, StreamBroken)).message


async def test_stop_is_rejected_by_responses(open_client, server):
    async with open_client(base_url=server.base_url, api="responses") as client:
        error = await failure(client, stop=("END",))
    assert "stop" in error.message
    assert server.requests == []
