"""Secrets are sent only to the origins they are bound to."""

import base64
from contextlib import aclosing

import pytest
from sideband.ops import Credential, EgressRefused
from sideband_http import SecretReturned
from sideband_http._addresses._url import parse_url
from sideband_http._request._egress import _OVERLAP, check_stream

pytestmark = pytest.mark.anyio

TOKEN = "s3cr3t-token-value"
ENCODED = base64.b64encode(TOKEN.encode()).decode()
HALF = TOKEN.replace("c", "%63").replace("t", "%74")
ESCAPED = "".join(f"%{byte:02x}" for byte in TOKEN.encode())


@pytest.fixture
async def bound(host, server):
    """Return a server that the secret is bound to."""
    await host.op("http.get", {"url": server.url("/echo"), "auth": "bearer"})
    server.requests.clear()
    return server


async def refused(host, op, url, **params):
    with pytest.raises(EgressRefused) as caught:
        await host.op(op, {"url": url, **params})
    error = caught.value
    assert (error.code, error.exit_code) == ("op.egress", 3)
    assert TOKEN not in error.message + error.hint
    return error.message


WITH_SECRET = {
    "header": ({"headers": {"X-Token": TOKEN}}, "header `x-token`"),
    "authorization": ({"headers": {"Authorization": f"Bearer {TOKEN}"}}, "header `authorization`"),
    "base64 header": ({"headers": {"X-Token": ENCODED}}, "header `x-token`"),
    "header name": ({"headers": {TOKEN: "1"}}, "header `[redacted:bearer]`"),
    "cookie": ({"cookies": {"sid": TOKEN}}, "header `cookie`"),
    "body": ({"body": f"…{TOKEN}…"}, "body"),
    "large body": ({"body": "x" * 400_000 + TOKEN}, "body"),
    "json": ({"json": {"a": [TOKEN]}}, "body"),
    "form": ({"data": {"a": TOKEN}}, "body"),
    "base64 body": ({"body": base64.b64encode(b"x" + TOKEN.encode()).decode()}, "body"),
    "hex body": ({"body": TOKEN.encode().hex()}, "body"),
}


async def test_secret_is_not_sent_to_another_origin(host, bound, other):
    failed = []
    for name, (params, part) in WITH_SECRET.items():
        try:
            await host.op("http.post", {"url": other.url("/echo"), **params})
        except EgressRefused as error:
            text = error.message + error.hint
            named = f"the {part} contains the secret" in error.message and f"sent to {other.origin}" in error.message
            if named and TOKEN not in text and (error.code, error.exit_code) == ("op.egress", 3):
                continue
            failed.append((name, text))
        else:
            failed.append((name, "not refused"))
    assert failed == []
    assert other.requests == []


async def test_refused_request_releases_its_key(host, bound, other):
    params = {"url": other.url("/echo"), "headers": {"X-Token": TOKEN}}
    with pytest.raises(EgressRefused):
        await host.op("http.post", params, key="one")
    await host.op("http.post", {**params, "headers": {}}, key="one")
    assert len(other.requests) == 1


async def test_secret_is_sent_to_its_origin(host, bound):
    params = {"headers": {"X-Token": TOKEN}, "cookies": {"sid": TOKEN}, "body": TOKEN}
    await host.op("http.post", {"url": bound.url("/echo"), **params})
    assert bound.requests[0].headers["x-token"] == TOKEN


@pytest.mark.parametrize("path", [f"/{TOKEN}", f"/echo?q={TOKEN}", f"/echo?q={ENCODED}", f"/{ESCAPED}", f"/?{HALF}"])
async def test_secret_in_a_url_is_refused_even_for_its_origin(host, bound, path):
    message = await refused(host, "http.get", bound.url(path))
    assert "the request line contains the secret `bearer`" in message
    assert bound.requests == []


async def test_secret_as_method_is_refused(host, server, credentials):
    async def resolve(handle, audience, ctx):
        return Credential(handle, "SECRET-METHOD")

    credentials.resolve = resolve
    await host.op("http.get", {"url": server.url("/echo"), "auth": "bearer"})
    await refused(host, "http.request", server.url("/echo"), method="secret-method")
    assert len(server.requests) == 1


async def test_secret_in_query_parameters_is_refused(host, bound):
    await refused(host, "http.get", bound.url("/echo"), params={"key": TOKEN})
    assert bound.requests == []


async def test_host_name_with_a_secret_is_not_resolved(host, bound, monkeypatch):
    lookups = []
    monkeypatch.setattr(
        "sideband_http._addresses._resolving.socket.getaddrinfo", lambda name, *_, **__: lookups.append(name)
    )
    await refused(host, "http.get", f"http://{TOKEN}.example.test/")
    assert lookups == []


@pytest.fixture
def answering(bound):
    """Return a function that makes the bound server answer `/leak` with a header."""

    def make(name, value, status=200):
        bound.reply(status=status, headers=[(name, value)], path="/leak")

    return make


async def test_redirect_with_a_secret_is_not_followed(host, bound, other, answering):
    answering("Location", f"{other.origin}/echo?q={TOKEN}", 302)
    await refused(host, "http.get", bound.url("/leak"))
    assert other.requests == []


async def test_host_name_with_a_secret_in_a_redirect_is_not_resolved(host, bound, answering, monkeypatch):
    lookups = []
    monkeypatch.setattr(
        "sideband_http._addresses._resolving.socket.getaddrinfo", lambda name, *_, **__: lookups.append(name)
    )
    answering("Location", f"http://{TOKEN}.example.test/", 302)
    await refused(host, "http.get", bound.url("/leak"))
    assert lookups == []


async def test_session_headers_with_a_secret_are_not_sent_to_another_origin(host, bound, other):
    steps = [
        ("http.session_open", {"headers": {"X-Token": TOKEN}}),
        ("http.session_request", {"session_id": "$session", "url": bound.url("/echo")}),
        ("http.session_request", {"session_id": "$session", "url": other.url("/echo")}),
    ]
    answers = await host.op("flow.run", {"steps": steps})
    assert [one.get("error") for one in answers] == [None, None, "op.egress"]
    assert other.requests == []


async def test_server_cookie_with_a_secret_is_not_sent_to_another_port(host, bound, other, answering):
    answering("Set-Cookie", f"sid={TOKEN}")
    steps = [
        ("http.session_open", {}),
        ("http.session_request", {"session_id": "$session", "url": bound.url("/leak")}),
        ("http.session_request", {"session_id": "$session", "url": bound.url("/echo")}),
        ("http.session_request", {"session_id": "$session", "url": other.url("/echo")}),
    ]
    answers = await host.op("flow.run", {"steps": steps})
    assert [one.get("error") for one in answers] == [None, None, None, "op.egress"]
    assert other.requests == []


async def test_download_does_not_send_a_secret_to_another_origin(host, bound, other):
    await refused(host, "http.download", other.url("/echo"), path="x", headers={"X-Token": TOKEN})
    assert other.requests == []


class Searched:
    """Records the searched parts and refuses those with the secret."""

    def __init__(self):
        self.parts = []

    def check_egress(self, audience, parts):
        self.parts.append((audience, parts["body"]))
        if TOKEN.encode() in parts["body"]:
            raise EgressRefused("test.op", "demo", "body", audience)


async def pieces(*given):
    for one in given:
        yield one


@pytest.mark.parametrize("cut", [1, 5, len(TOKEN) - 1])
@pytest.mark.parametrize("before", [0, 10, 4 * _OVERLAP - 4, 4 * _OVERLAP, 9 * _OVERLAP - 1])
async def test_secret_split_across_pieces_of_a_stream_is_found(cut, before):
    content = TOKEN.encode()
    parts = [b"x" * 65_536] * (before // 65_536) + [b"x" * (before % 65_536)]
    async with aclosing(pieces(*parts, content[:cut], content[cut:], b"y" * 300_000)) as stream:
        with pytest.raises(EgressRefused):
            await check_stream(stream, parse_url("http://h/"), Searched())


async def test_stream_without_a_secret_is_searched_completely():
    searched = Searched()
    await check_stream(pieces(*[b"x" * 500_000] * 5, b"end"), parse_url("http://h/"), searched)
    assert searched.parts[-1][1].endswith(b"end")
    assert {audience for audience, _ in searched.parts} == {"http://h"}


@pytest.mark.parametrize(("op", "params"), [("http.download", {"path": "kept.txt"}), ("http.fetch_blob", {})])
@pytest.mark.parametrize("form", ["{}", "Bearer {} and more", ENCODED, "x" * 5_000_000 + "{}" + "x" * 3_000_000])
async def test_body_with_a_secret_is_not_saved(host, bound, op, params, form):
    bound.reply(form.format(TOKEN).encode(), kind="application/problem+json", path="/given")
    with pytest.raises(SecretReturned) as caught:
        await host.op(op, {"url": bound.url("/given"), "auth": "bearer", **params})
    error = caught.value
    assert (error.code, bound.origin in error.message, TOKEN in error.message) == ("http.secret", True, False)
    assert await host.blobs.list(limit=10) == ()
    assert not [one for one in (host.home / "files").rglob("*") if one.is_file()]


async def test_body_without_a_secret_is_saved(host, bound):
    bound.reply(b"nothing of that kind", kind="application/problem+json", path="/given")
    assert (await host.op("http.fetch_blob", {"url": bound.url("/given"), "auth": "bearer"}))["bytes"] == 20
