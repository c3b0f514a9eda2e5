"""Parts of bodies: a secret that a server echoes cannot be read in slices; other parts are returned as requested."""

import json
import re

import anyio
import pytest
from sideband.broker import Call
from sideband.ops import EgressRefused, Grant, OpError, Origin
from sideband_http import HeaderRefused, ProtocolFailed
from sideband_http._request._ranges import MARGIN, RequestedRange

from .servers import TOKEN

pytestmark = pytest.mark.anyio


@pytest.fixture
def page(server):
    """Return a server with a page that echoes the request's headers, and serves any part of it."""

    def content(exchange):
        if (large := getattr(server, "large", None)) is not None:
            return large
        return json.dumps({"about": "grüße", "headers": dict(exchange.request.headers), "end": "."}).encode()

    def answer(exchange):
        whole, given = content(exchange), exchange.request.headers
        asked = given.get("range") or given.get("request-range") or given.get("x-ms-range")
        found = re.fullmatch(r"bytes=([0-9]*)-([0-9]*)", asked or "")
        if found is None or "if-range" in given:
            return exchange.respond(whole)
        first, last = found.groups()
        start = int(first) if first else max(0, len(whole) - int(last))
        stop = min(len(whole), int(last) + 1) if first and last else len(whole)
        if start >= stop:
            return exchange.respond(status=416, headers=[("Content-Range", f"bytes */{len(whole)}")])
        lines = [("Content-Range", f"bytes {start}-{stop - 1}/{len(whole)}")]
        return exchange.respond(whole[start:stop], status=getattr(server, "status", 206), headers=lines)

    server.answer(answer, path="/page")
    return server


async def slices(host, page, positions, ranges, **params):
    """Return the parts of a page that the host returns, joined, and the number of refused ones."""
    parts, refused = [], 0
    for start in positions:
        headers = {"Range": ranges(start, start + positions.step - 1), **params.get("headers", {})}
        try:
            answer = await host.op("http.get", {"url": page.url("/page"), **params, "headers": headers})
        except EgressRefused:
            refused += 1
        else:
            parts.append(answer["body"] or "")
    return "".join(parts), refused


async def test_credential_cannot_be_read_in_slices(host, page):
    joined, refused = await slices(host, page, range(0, 320, 4), "bytes={}-{}".format, auth="bearer")
    assert refused > 0
    assert TOKEN not in joined
    assert not any(TOKEN[at : at + 4] in joined for at in range(len(TOKEN) - 3))
    assert '"user-agent"' in joined


ORIGINS = {
    "open end": lambda start, _: f"bytes={start}-",
    "from the end": lambda start, _: f"bytes=-{start + 1}",
    "prefix": lambda start, end: f"bytes=0-{end}",
}


@pytest.mark.parametrize("ranges", ORIGINS.values(), ids=ORIGINS)
async def test_credential_cannot_be_read_from_the_difference_of_parts(host, page, ranges):
    joined, refused = await slices(host, page, range(0, 320, 5), ranges, auth="bearer")
    assert refused > 0
    assert not any(TOKEN[at : at + 4] in joined for at in range(len(TOKEN) - 3))


async def test_secret_that_the_server_kept_cannot_be_read_in_slices_without_the_credential(host, page):
    await host.op("http.get", {"url": page.url("/echo"), "auth": "bearer"})
    page.large = b"<" + b"x" * 100 + TOKEN.encode() + b"x" * 100 + b">"
    joined, refused = await slices(host, page, range(96, 130), "bytes={}-{}".format)
    assert (joined, refused) == ("x" * 16, len(TOKEN))


async def test_other_methods_cannot_read_slices(host, page):
    await host.op("http.get", {"url": page.url("/echo"), "auth": "bearer"})
    page.large = TOKEN.encode() + b"x" * 100
    part = {"url": page.url("/page"), "headers": {"rAnGe": "bytes=2-5"}}
    for name, params in {"request": {"method": "REPORT"}, "post": {"body": "x"}, "put": {}, "options": {}}.items():
        with pytest.raises(EgressRefused):
            await host.op(f"http.{name}", {**part, **params})
    assert len(page.requests) == 5


async def test_sessions_cannot_read_slices(host, page):
    page.large = TOKEN.encode() + b"x" * 100
    grant = Grant.parse(["http", "secrets"])
    call = Call("c", grant, "d", Origin(), anyio.current_time() + 60)
    part = {"headers": {"RANGE": "bytes=2-5"}}
    opening = {"base_url": page.url("/"), "auth": "bearer"}
    for of_session, of_request in ((part, {}), ({}, part)):
        session = await host.broker.dispatch(call, "http.session_open", {**opening, **of_session})
        with pytest.raises(EgressRefused):
            await host.broker.dispatch(call, "http.session_request", {**session, "url": "/page", **of_request})
    await call.end(print)


@pytest.mark.parametrize("status", [206, 200])
async def test_part_counts_as_one_whatever_its_status(host, page, status):
    page.status, page.large = status, TOKEN.encode() + b"x" * 100
    await host.op("http.get", {"url": page.url("/echo"), "auth": "bearer"})
    with pytest.raises(EgressRefused):
        await host.op("http.get", {"url": page.url("/page"), "headers": {"Range": "bytes=0-5"}})


async def test_redirect_to_the_page_keeps_the_check(host, page):
    page.large = TOKEN.encode() + b"x" * 100
    await host.op("http.get", {"url": page.url("/echo"), "auth": "bearer"})
    with pytest.raises(EgressRefused):
        await host.op("http.get", {"url": page.url("/redirect?to=/page"), "headers": {"Range": "bytes=0-5"}})


async def test_redirect_to_another_origin_requests_the_whole_body(host, page, other):
    params = {"url": page.url(f"/redirect?to={other.url('/echo')}"), "headers": {"Range": "bytes=0-5"}}
    answer = await host.op("http.get", params)
    assert (answer["status"], "range" in answer["json"]["headers"]) == (200, False)


REFUSED = [
    {"Range": "bytes=0-3,8-11"},
    {"Range": "bytes=0-3, 8-11"},
    {"Range": "bytes=3-0"},
    {"Range": "bytes=-"},
    {"Range": "bytes = 0-3"},
    {"Range": "BYTES=0-3"},
    {"Range": "octets=0-3"},
    {"Range": "items=0-3"},
    {"Range": ""},
    {"Range": "bytes=0x0-0x3"},
    {"Range": f"bytes=0-{'9' * 20}"},
    {"Request-Range": "bytes=0-3"},
    {"Request_Range": "bytes=0-3"},
    {"X-Ms-Range": "bytes=0-3"},
    {"x-ms_range": "bytes=0-3"},
]


async def test_other_forms_of_ranges_are_refused_before_anything_is_sent(host, page):
    for headers in REFUSED:
        with pytest.raises(HeaderRefused):
            await host.op("http.get", {"url": page.url("/page"), "headers": headers})
    assert page.requests == []


@pytest.mark.parametrize("op", ["download", "fetch_blob"])
async def test_part_of_a_body_is_not_saved(host, page, op):
    params = {"path": "a.txt"} if op == "download" else {}
    with pytest.raises(HeaderRefused):
        await host.op(f"http.{op}", {"url": page.url("/page"), "headers": {"RANGE": "bytes=0-3"}, **params})
    assert page.requests == []


ANSWERS = {
    "several parts": (b"--x\r\n\r\nabcd\r\n--x--", [("Content-Type", "multipart/byteranges; boundary=x")]),
    "no range": (b"abcd", []),
    "unknown size": (b"abcd", [("Content-Range", "bytes 0-3/*")]),
    "other length": (b"abcd", [("Content-Range", "bytes 0-4/100000")]),
    "without the margin": (b"abcd", [("Content-Range", "bytes 10-13/100000")]),
    "no margin after": (b"abcd" * 4, [("Content-Range", "bytes 0-15/100000")]),
    "no margin before": (b"abcd", [("Content-Range", "bytes 10-13/14")]),
    "beyond the end": (b"abcd" * 4, [("Content-Range", "bytes 0-15/14")]),
    "longer than sent": (b"abcd" * 4, [("Content-Range", "bytes 0-16/17")]),
    "two ranges": (b"abcd", [("Content-Range", "bytes 0-3/4"), ("Content-Range", "bytes 0-3/4")]),
    "compressed": (b"abcd", [("Content-Range", "bytes 0-3/4"), ("Content-Encoding", "br")]),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_answer_with_another_range_than_requested_is_refused(host, server, answer):
    body, headers = answer
    server.reply(body, status=206, headers=headers, kind="text/plain", path="/odd")
    with pytest.raises(ProtocolFailed):
        await host.op("http.get", {"url": server.url("/odd"), "headers": {"Range": "bytes=10-13"}})


@pytest.mark.parametrize(
    "asked", ["bytes=0-0", "bytes=5-9", "bytes=70000-70009", "bytes=299990-", "bytes=-7", "bytes=0-", "bytes=-400000"]
)
async def test_part_is_returned_as_requested(host, page, asked):
    page.large = bytes(97 + at % 26 for at in range(300_000))
    answer = await host.op("http.get", {"url": page.url("/page"), "auth": "bearer", "headers": {"Range": asked}})
    first, last = asked.removeprefix("bytes=").split("-")
    expected = page.large[int(first) : int(last) + 1 if last else None] if first else page.large[-int(last) :]
    start = page.large.rindex(expected) if not first else int(first)
    assert (answer["status"], answer["ok"], answer["body"].encode()) == (206, True, expected)
    assert answer["headers"]["content-range"] == f"bytes {start}-{start + len(expected) - 1}/300000"
    assert answer["headers"]["content-length"] == str(answer["body_length"]) == str(len(expected))


async def test_part_that_extends_beyond_the_body_ends_with_it(host, page):
    page.large = b"abcdef"
    answer = await host.op("http.get", {"url": page.url("/page"), "headers": {"Range": "bytes=4-99"}})
    assert (answer["status"], answer["body"]) == (206, "ef")


@pytest.mark.parametrize("asked", ["bytes=6-9", "bytes=70000-70001", "bytes=-0"])
async def test_part_outside_the_body_is_unsatisfiable(host, page, asked):
    page.large = b"abcdef"
    answer = await host.op("http.get", {"url": page.url("/page"), "headers": {"Range": asked}})
    assert (answer["status"], answer["ok"], answer["body"]) == (416, False, "")


async def test_part_that_contains_a_whole_secret_is_redacted(host, page):
    page.large = b"x" * 50 + TOKEN.encode() + b"x" * 50
    await host.op("http.get", {"url": page.url("/echo"), "auth": "bearer"})
    answer = await host.op("http.get", {"url": page.url("/page"), "headers": {"Range": "bytes=40-80"}})
    assert TOKEN not in answer["body"]
    assert "[redacted:bearer]" in answer["body"]


async def test_condition_that_is_not_met_returns_the_whole_body(host, page):
    headers = {"Range": "bytes=0-5", "If-Range": '"old"'}
    answer = await host.op("http.get", {"url": page.url("/page"), "auth": "bearer", "headers": headers})
    assert answer["status"] == 200
    assert answer["body"].startswith('{"about"')
    assert TOKEN not in answer["body"]


async def test_limit_applies_to_the_requested_part(host, page):
    page.large = b"x" * 300_000
    params = {"url": page.url("/page"), "max_bytes": 10}
    answer = await host.op("http.get", {**params, "headers": {"Range": "bytes=100000-100009"}})
    assert answer["body_length"] == 10
    for size, asked in ((300_000, "bytes=100000-100010"), (100, "bytes=50-60")):
        page.large = b"x" * size
        with pytest.raises(OpError) as caught:
            await host.op("http.get", {**params, "headers": {"Range": asked}})
        assert caught.value.code == "http.too_large"


async def test_head_request_gets_the_range_of_the_skill(host, page):
    page.large = b"x" * 300_000
    answer = await host.op("http.head", {"url": page.url("/page"), "headers": {"Range": "bytes=5-9"}})
    assert (answer["status"], answer["headers"]["content-length"]) == (206, "5")


def test_margin_is_requested_before_and_after_the_part():
    assert RequestedRange.parse("bytes=5-9").widened == f"bytes=0-{9 + MARGIN}"
    assert RequestedRange.parse("bytes=100000-").widened == f"bytes={100_000 - MARGIN}-"
    assert RequestedRange.parse("bytes=-5").widened == f"bytes=-{5 + MARGIN}"
