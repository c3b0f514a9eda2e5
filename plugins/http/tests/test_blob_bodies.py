"""Sending blobs as bodies, and saving bodies as blobs."""

import hashlib
from contextlib import suppress

import anyio
import pytest
from sideband.blobs import BlobDamaged, BlobMissing
from sideband.ops import OpDenied, OpParamsInvalid
from sideband_http import HttpTimeout

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize(("anyio_backend", "transport"), [("asyncio", "aiohttp"), ("trio", "httpx")]),
]

LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
LARGE = b"0123456789abcdef" * 300_000


@pytest.fixture
async def large(host):
    return (await host.blobs.put(LARGE)).sha256


async def send(host, url, sha256, grants=None, **params):
    return await host.op("http.post", {"url": url, "body_blob": sha256, **params}, grants=grants)


async def test_blob_is_sent_completely_with_its_length(host, raw_server, large):
    raw_server.send(LAST)
    await send(host, raw_server.url(), large)
    head, body = raw_server.requests[0].head, raw_server.requests[0].body
    assert body == LARGE
    assert b"content-length: %d" % len(LARGE) in head.lower()
    assert b"transfer-encoding" not in head.lower()
    assert b"content-type: application/octet-stream" in head.lower()


async def test_empty_blob_is_an_empty_body(host, raw_server):
    raw_server.send(LAST)
    await send(host, raw_server.url(), (await host.blobs.put(b"")).sha256)
    assert raw_server.requests[0].body == b""
    assert b"content-length: 0" in raw_server.requests[0].head.lower()


async def test_redirect_within_the_origin_sends_the_blob_again(host, server, large):
    answer = await send(host, server.url("/redirect?code=307&to=/echo"), large)
    assert answer["redirects"]
    assert [len(one.body) for one in server.requests] == [4_800_000, 4_800_000]


async def test_session_sends_blobs(host, server, large):
    request = {"session_id": "$session", "url": server.url("/echo"), "method": "PUT", "body_blob": large}
    await host.op("flow.run", {"steps": [("http.session_open", {}), ("http.session_request", request)]})
    assert len(server.requests[0].body) == 4_800_000


async def test_sending_a_blob_requires_a_grant(host, server, large):
    with pytest.raises(OpDenied, match="blobs"):
        await send(host, server.url("/echo"), large, grants=["http:host=127.0.0.1", "blobs:mode=write"])
    assert server.requests == []
    await send(host, server.url("/echo"), large, grants=["http:host=127.0.0.1", "blobs:mode=read"])
    assert len(server.requests) == 1


async def test_missing_blob_is_rejected_before_sending(host, server):
    with pytest.raises(BlobMissing):
        await send(host, server.url("/echo"), "0" * 64)
    assert server.requests == []


@pytest.mark.parametrize("sha256", ["../../ledger", "A" * 64, "0" * 63, "0" * 64 + "\n"])
async def test_invalid_digest_is_rejected(host, server, sha256):
    with pytest.raises(OpParamsInvalid):
        await send(host, server.url("/echo"), sha256)


async def test_blob_and_another_body_are_rejected(host, server, large):
    with pytest.raises(OpParamsInvalid, match="body and body_blob"):
        await send(host, server.url("/echo"), large, body="x")


async def test_damaged_blob_is_not_sent(host, raw_server, large):
    raw_server.send(LAST)
    path = host.blobs.path(large)
    path.write_bytes(LARGE[:-1] + b"X")
    with pytest.raises(BlobDamaged):
        await send(host, raw_server.url(), large)
    assert raw_server.requests == []


async def test_server_that_stops_reading_is_a_timeout(host, large):
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        with pytest.raises(HttpTimeout):
            await send(host, url, large, timeout=0.3)


async def test_body_is_saved_as_a_blob(host, server):
    answer = await host.op("http.fetch_blob", {"url": server.url("/bytes?count=3000000")})
    assert (answer["status"], answer["bytes"]) == (200, 3_000_000)
    assert answer["sha256"] == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert await host.blobs.read(answer["sha256"], max_bytes=3_000_000) == b"x" * 3_000_000


async def test_error_status_saves_no_blob(host, server):
    answer = await host.op("http.fetch_blob", {"url": server.url("/status?code=404")})
    assert (answer["status"], answer["sha256"], answer["bytes"]) == (404, None, 0)
    assert await host.blobs.list() == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [("/bytes?count=101", "http.too_large"), ("/gzip?count=5000000", "http.too_large"), ("/cut", "http.protocol")],
)
async def test_failed_fetch_leaves_no_blob(host, server, path, code):
    with pytest.raises(ValueError if code == "http.too_large" else ConnectionError) as caught:
        await host.op("http.fetch_blob", {"url": server.url(path), "max_bytes": 100})
    assert caught.value.code == code
    assert await host.blobs.list() == ()
    assert list(host.blobs.folder.glob(".part-*")) == []


async def test_saving_a_blob_requires_a_grant(host, server):
    params = {"url": server.url("/echo")}
    with pytest.raises(OpDenied, match="blobs"):
        await host.op("http.fetch_blob", params, grants=["http:host=127.0.0.1", "blobs:mode=read"])
    assert server.requests == []
    assert (await host.op("http.fetch_blob", params, grants=["http:host=127.0.0.1", "blobs:mode=write"]))["sha256"]


async def test_blob_that_changes_during_sending_is_never_complete(host):
    blob = await host.blobs.put(b"\0" * 16_000_000)
    received, ended = [], anyio.Event()

    async def serve(stream):
        async with stream:
            received.append(len(await stream.receive()))
            with host.blobs.path(blob.sha256).open("r+b") as file:
                file.seek(-1, 2)
                file.write(b"X")
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    received.append(len(await stream.receive()))
        ended.set()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        with pytest.raises(BlobDamaged):
            await send(host, f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}", blob.sha256)
        await ended.wait()
        tasks.cancel_scope.cancel()
    assert sum(received) < 16_000_000
