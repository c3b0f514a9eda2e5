"""What calls itself the server of secrets, and is broken, slow or hostile."""

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


def answer(body, status="200 OK", *headers):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


def secret(**more):
    return {"data": {"data": {"value": VALUE}, "metadata": METADATA}} | more


@contextmanager
def serve(say):
    """A server that says ``say(path, wait)`` and keeps the lines that it is sent; ``wait`` returns when it ends."""
    heard, over = [], threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self):
            lines = []
            while (line := self.rfile.readline()).strip():
                lines.append(line.decode("latin-1").strip())
            if lines:
                heard.append(lines)
                with suppress(OSError):
                    for piece in say(lines[0].split(" ")[1], over):
                        self.wfile.write(piece)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_address[1]}", heard=heard)
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


def about_tokens(path):
    return path.startswith("/v1/auth/token/")


BROKEN = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "no JSON": answer(b"<html>"),
    "no object": answer([1]),
    "JSON without end": answer(b"[" * 100_000),
    "other JSON": answer({"value": VALUE}),
    "data that are none": answer({"data": VALUE}),
    "metadata without a version": answer({"data": {"data": {"value": VALUE}, "metadata": {}}}),
    "a version that is none": answer({"data": {"data": {"value": VALUE}, "metadata": METADATA | {"version": True}}}),
    "a time that is none": answer({"data": {"data": {"value": VALUE}, "metadata": METADATA | {"created_time": 7}}}),
    "half of an answer": answer(secret())[:-20],
    "too much": answer(b'"' + b"x" * 2_000_000 + b'"'),
    "more than it says": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fffff\r\n" + b"x" * 0xFFFFF,
    "gzip": answer(gzip.compress(b"x" * 10_000_000), "200 OK", "Content-Encoding: gzip"),
    "a redirect": answer(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:9/"),
    "another redirect": answer(b"", "302 Found", "Location: //evil.test/"),
    "a status of its own": answer(secret(), "299 Fine"),
    "an error": answer({"errors": [VALUE, TOKEN]}, "500 Internal Server Error"),
    "a refusal that says too much": answer({"errors": [VALUE, TOKEN]}, "400 Bad Request"),
    "a page for what is missing": answer(b"<html>", "404 Not Found"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_answer_is_one_of_the_errors_and_repeats_nothing(open_with, name):
    with serve(lambda path, _: [answer({}, "403 Forbidden") if about_tokens(path) else BROKEN[name]]) as server:
        async with open_with(server.address) as host:
            with pytest.raises(VaultError) as caught:
                await host.op("secrets.read", {"name": "token"})
        told = json.dumps(caught.value.as_dict())
        assert VALUE not in told
        assert TOKEN not in told
        assert caught.value.hint
        assert len([one for one in server.heard if one[0] == "GET /v1/secret/data/token HTTP/1.1"]) == 1


async def test_each_kind_of_broken_answer_has_its_own_error(open_with):
    kinds = {
        "no HTTP": (VaultMalformed, "no HTTP"),
        "no JSON": (VaultMalformed, "not in the form of the API"),
        "too much": (VaultMalformed, "more than 1,048,576 bytes"),
        "gzip": (VaultMalformed, "encoded although nobody asked"),
        "a redirect": (VaultError, "status 307"),
        "an error": (VaultError, "status 500"),
    }
    for name, (kind, told) in kinds.items():
        with serve(lambda path, _, name=name: [BROKEN[name]]) as server:
            async with open_with(server.address) as host:
                with pytest.raises(kind, match=told) as caught:
                    await host.op("secrets.read", {"name": "token"})
            assert caught.value.code == ("secrets.vault_malformed" if kind is VaultMalformed else "secrets.vault")


async def test_a_server_that_is_not_there_may_be_tried_again(open_with):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with open_with(f"http://127.0.0.1:{taken.getsockname()[1]}") as host:
            with pytest.raises(VaultUnreachable) as caught:
                await host.op("secrets.read", {"name": "token"})
    assert (caught.value.code, caught.value.retryable) == ("secrets.vault_unreachable", True)


def silence(_path, over):
    over.wait()
    yield b""


def drops(_path, over):
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    while not over.wait(0.02):
        yield b" "


@pytest.mark.parametrize("say", [silence, drops])
async def test_a_server_that_takes_its_time_is_given_up(open_with, say):
    with serve(say) as server:
        async with open_with(server.address, timeout=0.2) as host:
            with pytest.raises(VaultUnreachable, match=r"0\.2 seconds"):
                await host.op("secrets.read", {"name": "token"})


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_waiting_for_it_can_be_cancelled(open_with):
    reached = threading.Event()

    def say(_path, over):
        reached.set()
        over.wait()
        yield b""

    with serve(say) as server:
        async with open_with(server.address, timeout=300) as host, anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "secrets.read", {"name": "token"})
            await anyio.to_thread.run_sync(reached.wait)
            tasks.cancel_scope.cancel()


async def test_no_proxy_of_the_environment_is_told_the_token(open_with, monkeypatch):
    with serve(lambda *_: [answer(secret())]) as proxy, serve(lambda *_: [answer(secret())]) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        async with open_with(server.address) as host:
            assert await host.op("secrets.read", {"name": "token"}) == VALUE
        assert proxy.heard == []
        assert all(f"X-Vault-Token: {TOKEN}" in lines for lines in server.heard)


async def test_a_token_that_can_not_look_at_itself_is_used_all_the_same(open_with):
    for status in ("403 Forbidden", "500 Internal Server Error", "200 OK"):
        refusal = answer([], status)
        with serve(lambda path, _, no=refusal: [no if about_tokens(path) else answer(secret())]) as server:
            async with open_with(server.address) as host:
                assert await host.op("secrets.read", {"name": "token"}) == VALUE


async def test_a_list_of_a_server_is_checked(open_with):
    lists = {
        "no list": {"data": {"keys": "abc"}},
        "too many": {"data": {"keys": [f"name-{number}" for number in range(1001)]}},
    }
    for listed in lists.values():
        said = answer(listed)
        with serve(lambda path, _, said=said: [said if "metadata" in path else answer(secret())]) as server:
            async with open_with(server.address) as host:
                told = await host.op("secrets.list", {})
                assert told["items"] == []
                assert "1,000 names" in told["problems"]["vault"]


async def test_names_of_a_list_lead_nowhere_else(open_with):
    names = ["../../sys/seal", "good", "a/b", "", "A", 7, None, "a?b", "a" * 65, ".."]
    listed = {"data": {"keys": names}}
    with serve(lambda path, _: [answer(listed) if "metadata" in path else answer(secret())]) as server:
        async with open_with(server.address) as host:
            assert [one["name"] for one in (await host.op("secrets.list", {}))["items"]] == ["good"]
        paths = {lines[0].split(" ")[1] for lines in server.heard}
    assert paths == {"/v1/auth/token/lookup-self", "/v1/secret/metadata", "/v1/secret/data/good"}
