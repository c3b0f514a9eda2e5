"""Broken, slow and hostile Vault servers."""

import gzip
import json
import socket
import socketserver
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import anyio
import pytest
from sideband_secrets import VaultError, VaultMalformed, VaultUnreachable

pytestmark = pytest.mark.anyio

TOKEN = "t0ken-of-the-server"
VALUE = "s3cr3t-value"
METADATA = {"version": 1, "created_time": "2026-01-01T00:00:00.123456789Z"}


def reply(body, status="200 OK", *headers):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


def secret(**more):
    return {"data": {"data": {"value": VALUE}, "metadata": METADATA}} | more


@contextmanager
def serve(respond):
    """Run a server that sends ``respond(path, over)`` and records requests; ``over`` is an event set at the end."""
    requests, over = [], threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self):
            lines = []
            while (line := self.rfile.readline()).strip():
                lines.append(line.decode("latin-1").strip())
            if lines:
                requests.append(lines)
                with suppress(OSError):
                    for piece in respond(lines[0].split(" ")[1], over):
                        self.wfile.write(piece)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_address[1]}", requests=requests)
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def open_with(open_host, monkeypatch):
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)

    def open_with(address, **more):
        return open_host(backend="memory", sources=["vault"], vault={"address": address} | more)

    return open_with


def is_token_request(path):
    return path.startswith("/v1/auth/token/")


BROKEN = {
    "empty response": b"",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "no JSON": reply(b"<html>"),
    "no object": reply([1]),
    "unclosed JSON": reply(b"[" * 100_000),
    "other JSON": reply({"value": VALUE}),
    "invalid data": reply({"data": VALUE}),
    "metadata without a version": reply({"data": {"data": {"value": VALUE}, "metadata": {}}}),
    "invalid version": reply({"data": {"data": {"value": VALUE}, "metadata": METADATA | {"version": True}}}),
    "invalid time": reply({"data": {"data": {"value": VALUE}, "metadata": METADATA | {"created_time": 7}}}),
    "truncated response": reply(secret())[:-20],
    "too much": reply(b'"' + b"x" * 2_000_000 + b'"'),
    "incomplete chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fffff\r\n" + b"x" * 0xFFFFF,
    "gzip": reply(gzip.compress(b"x" * 10_000_000), "200 OK", "Content-Encoding: gzip"),
    "a redirect": reply(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:9/"),
    "another redirect": reply(b"", "302 Found", "Location: //evil.test/"),
    "unknown status": reply(secret(), "299 Fine"),
    "an error": reply({"errors": [VALUE, TOKEN]}, "500 Internal Server Error"),
    "error that contains the value": reply({"errors": [VALUE, TOKEN]}, "400 Bad Request"),
    "404 page": reply(b"<html>", "404 Not Found"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_broken_response_is_a_typed_error_without_its_content(open_with, name):
    with serve(lambda path, _: [reply({}, "403 Forbidden") if is_token_request(path) else BROKEN[name]]) as server:
        async with open_with(server.address) as host:
            with pytest.raises(VaultError) as caught:
                await host.op("secrets.read", {"name": "token"})
        shown = json.dumps(caught.value.as_dict())
        assert VALUE not in shown
        assert TOKEN not in shown
        assert caught.value.hint
        assert len([one for one in server.requests if one[0] == "GET /v1/secret/data/token HTTP/1.1"]) == 1


async def test_kinds_of_broken_responses_have_distinct_errors(open_with):
    kinds = {
        "no HTTP": (VaultMalformed, "invalid HTTP"),
        "no JSON": (VaultMalformed, "unexpected response format"),
        "too much": (VaultMalformed, "1,048,576 bytes"),
        "gzip": (VaultMalformed, "Content-Encoding"),
        "a redirect": (VaultError, "status 307"),
        "an error": (VaultError, "status 500"),
    }
    for name, (kind, message) in kinds.items():
        with serve(lambda path, _, name=name: [BROKEN[name]]) as server:
            async with open_with(server.address) as host:
                with pytest.raises(kind, match=message) as caught:
                    await host.op("secrets.read", {"name": "token"})
            assert caught.value.code == ("secrets.vault_malformed" if kind is VaultMalformed else "secrets.vault")


async def test_unreachable_server_is_a_retryable_error(open_with):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with open_with(f"http://127.0.0.1:{taken.getsockname()[1]}") as host:
            with pytest.raises(VaultUnreachable) as caught:
                await host.op("secrets.read", {"name": "token"})
    assert (caught.value.code, caught.value.retryable) == ("secrets.vault_unreachable", True)


def never_responds(_path, over):
    over.wait()
    yield b""


def sends_single_bytes(_path, over):
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    while not over.wait(0.02):
        yield b" "


@pytest.mark.parametrize("respond", [never_responds, sends_single_bytes])
async def test_slow_server_times_out(open_with, respond):
    with serve(respond) as server:
        async with open_with(server.address, timeout=0.2) as host:
            with pytest.raises(VaultUnreachable, match=r"0\.2 seconds"):
                await host.op("secrets.read", {"name": "token"})


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_wait_for_the_server_can_be_cancelled(open_with):
    reached = threading.Event()

    def respond(_path, over):
        reached.set()
        over.wait()
        yield b""

    with serve(respond) as server:
        async with open_with(server.address, timeout=300) as host, anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "secrets.read", {"name": "token"})
            await anyio.to_thread.run_sync(reached.wait)
            tasks.cancel_scope.cancel()


async def test_proxies_of_the_environment_are_ignored(open_with, monkeypatch):
    with serve(lambda *_: [reply(secret())]) as proxy, serve(lambda *_: [reply(secret())]) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        async with open_with(server.address) as host:
            assert await host.op("secrets.read", {"name": "token"}) == VALUE
        assert proxy.requests == []
        assert all(f"X-Vault-Token: {TOKEN}" in lines for lines in server.requests)


async def test_failed_token_lookup_is_ignored(open_with):
    for status in ("403 Forbidden", "500 Internal Server Error", "200 OK"):
        refusal = reply([], status)
        with serve(lambda path, _, no=refusal: [no if is_token_request(path) else reply(secret())]) as server:
            async with open_with(server.address) as host:
                assert await host.op("secrets.read", {"name": "token"}) == VALUE


async def test_invalid_list_is_an_error(open_with):
    for keys in ("abc", [f"name-{number}" for number in range(1001)]):
        response = reply({"data": {"keys": keys}})
        with serve(lambda path, _, response=response: [response if "metadata" in path else reply(secret())]) as server:
            async with open_with(server.address) as host:
                listed = await host.op("secrets.list", {})
                assert listed["items"] == []
                assert "1,000 names" in listed["problems"]["vault"]


async def test_invalid_names_in_a_list_are_ignored(open_with):
    names = ["../../sys/seal", "good", "a/b", "", "A", 7, None, "a?b", "a" * 65, ".."]
    listed = {"data": {"keys": names}}
    with serve(lambda path, _: [reply(listed) if "metadata" in path else reply(secret())]) as server:
        async with open_with(server.address) as host:
            assert [one["name"] for one in (await host.op("secrets.list", {}))["items"]] == ["good"]
        paths = {lines[0].split(" ")[1] for lines in server.requests}
    assert paths == {"/v1/auth/token/lookup-self", "/v1/secret/metadata", "/v1/secret/data/good"}
