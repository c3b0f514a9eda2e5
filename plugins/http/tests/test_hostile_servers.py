"""Servers that flood, stall or violate the protocol, with both transports. Other requests must still succeed."""

import encodings
import gzip
import zlib

import anyio
import pytest
from sideband_http import HttpError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize(("anyio_backend", "transport"), [("asyncio", "aiohttp"), ("trio", "httpx")]),
]

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
REFUSED = {"http.protocol", "http.too_large", "http.content"}


async def outcome(host, url, op="http.get", **params):
    """Return the response or the error code."""
    with anyio.fail_after(10):
        try:
            return await host.op(op, {"url": url, "timeout": 5, **params})
        except HttpError as error:
            return error.code


async def check_neighbor(host, server):
    assert (await host.op("http.get", {"url": server.url("/bytes?count=3")}))["body"] == "xxx"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (HEAD, b"X-A: " + b"y" * 1000 + b"\r\n"),
        (HEAD + b"X-A: ", b"y" * 1000),
        (b"HTTP/1.1 200 ", b"y" * 1000),
        (b"", b"y" * 1000),
        (CHUNKED + b"0\r\n", b"X-A: y\r\n" * 100),
        (CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"),
        (CHUNKED, b"1\r\nx\r\n" * 200),
        (HEAD + b"\r\n", b"x" * 65_536),
        (HEAD + b"Content-Length: 999999999999999\r\n\r\n", b"x" * 65_536),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b""), gzip.compress(b"") * 100),
    ],
    ids=[
        "headers",
        "header",
        "status",
        "garbage",
        "trailers",
        "chunks",
        "tiny-chunks",
        "body",
        "length",
        "gzip-members",
    ],
)
async def test_flood_is_aborted(host, server, raw_server, start, piece):
    raw_server.flood(start, piece)
    assert await outcome(host, raw_server.url(), max_bytes=10_000) in REFUSED
    assert raw_server.sent < 30_000_000
    await check_neighbor(host, server)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
        (CHUNKED + b"5;", b"name=value;"),
    ],
    ids=["continue", "hints", "chunk-extension"],
)
async def test_flood_without_content_is_a_timeout(host, server, raw_server, start, piece):
    raw_server.flood(start, piece * 100)
    assert await outcome(host, raw_server.url(), timeout=0.2) in {"http.timeout", "http.protocol"}
    await check_neighbor(host, server)


DRIPS = {
    "status": (b"HTTP/1.", b"1"),
    "name": (HEAD, b"X"),
    "header": (HEAD, b"X: y\r\n"),
    "body": (HEAD + b"Content-Length: 1000\r\n\r\n", b"x"),
    "chunk": (CHUNKED + b"400\r\n", b"x"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


async def test_timeout_covers_a_server_that_sends_byte_by_byte(host, server, raw_server):
    for name, case in DRIPS.items():
        raw_server.flood(*case, every=0.02, path=f"/{name}")
    codes = {}

    async def request(name):
        codes[name] = await outcome(host, raw_server.url(f"/{name}"), timeout=0.2)

    async with anyio.create_task_group() as tasks:
        for name in DRIPS:
            tasks.start_soon(request, name)
    assert codes.keys() == DRIPS.keys()
    assert {name: code for name, code in codes.items() if code not in ("http.timeout", "http.protocol")} == {}
    await check_neighbor(host, server)


MALFORMED = [
    b"HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 2 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
    b"ICY 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"200 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"<html>not http</html>",
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00",
    b"",
    HEAD,
    HEAD + b"Content-Length: 5",
    HEAD + b"no colon\r\n\r\n",
    HEAD + b": no name\r\nContent-Length: 0\r\n\r\n",
    HEAD + b"a b: c\r\nContent-Length: 0\r\n\r\n",
    HEAD + b"Content-Length : 0\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nsmall",
    HEAD + b"Content-Length: 5, 6\r\n\r\nsmall",
    HEAD + b"Content-Length: +5\r\n\r\nsmall",
    HEAD + b"Content-Length: -5\r\n\r\nsmall",
    HEAD + b"Content-Length: 0x5\r\n\r\nsmall",
    HEAD + b"Content-Length: 5.0\r\n\r\nsmall",
    HEAD + b"Content-Length: \xd9\xa5\r\n\r\nsmall",
    HEAD + b"Content-Length: 100000000000000000000\r\n\r\nsmall",
    HEAD + b"Content-Length: 10\r\n\r\nsmall",
    HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nsmall\r\n0\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsmall\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsmall\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n5\r\nsmall\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n5\r\nsmall\r\n0\r\n\r\n",
    CHUNKED + b"5\r\nsmall\r\n",
    CHUNKED + b"-5\r\nsmall\r\n0\r\n\r\n",
    CHUNKED + b"0x5\r\nsmall\r\n0\r\n\r\n",
    CHUNKED + b"FFFFFFFFFFFFFFFFF\r\nsmall\r\n0\r\n\r\n",
    CHUNKED + b"5\r\nsmallXX0\r\n\r\n",
    CHUNKED + b"\r\nsmall\r\n0\r\n\r\n",
    CHUNKED + b"g\r\nsmall\r\n0\r\n\r\n",
    HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
]


async def test_malformed_response_is_a_protocol_error(host, server, raw_server):
    outcomes = []
    for response in MALFORMED:
        raw_server.send(response)
        outcomes.append((response, await outcome(host, raw_server.url())))
    assert [one for one in outcomes if one[1] != "http.protocol"] == []
    await check_neighbor(host, server)


@pytest.mark.parametrize(
    "surplus",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned", b"garbage", b"\r\n\r\n"],
    ids=["response", "garbage", "blank"],
)
async def test_surplus_data_is_not_used_as_the_next_response(host, raw_server, surplus):
    def answer(exchange):
        first = len(raw_server.requests) == 1
        body = b"5\r\n\r\nfirst" + surplus if first else b"6\r\n\r\nsecond"
        exchange.send(HEAD + b"Content-Length: " + body)
        return True

    raw_server.answer(answer)
    answers = [await outcome(host, raw_server.url()) for _ in range(2)]
    bodies = [one if isinstance(one, str) else one["body"] for one in answers]
    assert bodies[0] in {"first", "http.protocol"}
    assert bodies[1] == "second"


@pytest.mark.parametrize("layers", [1, 2, 3])
async def test_decompression_bomb_stops_at_the_limit(host, server, raw_server, layers):
    bomb = b"\0" * 30_000_000
    for _ in range(layers):
        bomb = gzip.compress(bomb)
    encoding = b", ".join([b"gzip"] * layers)
    raw_server.send(HEAD + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding, len(bomb)) + bomb)
    assert await outcome(host, raw_server.url(), max_bytes=100_000) == "http.too_large"
    await check_neighbor(host, server)


async def test_too_many_layers_are_not_decoded(host, raw_server):
    body = b"x" * 1000
    for _ in range(10):
        body = zlib.compress(body)
    encoding = b", ".join([b"deflate"] * 10)
    raw_server.send(HEAD + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (encoding, len(body)) + body)
    assert (await outcome(host, raw_server.url()))["bytes"] == body


async def test_folded_header_is_joined_or_rejected(host, raw_server):
    raw_server.send(HEAD + b"X-Long: one\r\n two\r\n\tthree\r\nContent-Length: 0\r\n\r\n")
    answer = await outcome(host, raw_server.url())
    assert answer == "http.protocol" or answer["headers"]["x-long"].split() == ["one", "two", "three"]
    assert answer == "http.protocol" or "\n" not in answer["headers"]["x-long"]


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (b"Content-Type: application/json", b"<html>"),
        (b"Content-Type: application/json; charset=utf-16", b"{}"),
        (b"Content-Type: text/plain; charset=punycode", b"abc-"),
        (b"Content-Type: text/plain; charset=\xff", b"\xff\xfe"),
        (b"Content-Type: " + b";" * 4000, b"x"),
        (b"Content-Type: application/json", b"[" * 100_000),
        (b"Content-Type: application/json", b"9" * 100_000),
    ],
)
async def test_wrong_content_type_is_not_an_error(host, raw_server, header, body):
    raw_server.send(HEAD + header + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    answer = await outcome(host, raw_server.url())
    assert (answer["status"], answer["body_length"], answer["json"]) == (200, len(body), None)


async def test_unknown_charset_name_is_not_cached_by_python(host, raw_server):
    raw_server.send(HEAD + b"Content-Type: text/plain; charset=made-up-here\r\nContent-Length: 1\r\n\r\nx")
    assert (await outcome(host, raw_server.url()))["bytes"] == b"x"
    # Python caches every codec name here.
    assert [name for name in encodings._cache if "made" in name] == []
