"""Redirects, credentials and cookies: what is sent to which origin."""

import pytest
from sideband.ops import OpDenied, OpFailed
from sideband_http import HeaderRefused, RedirectRefused, UrlInvalid

pytestmark = pytest.mark.anyio

TOKEN = "s3cr3t-token-value"


def to(server, path="/echo", **query):
    return {"to": server.url(path) if server else path, **query}


async def test_redirect_is_followed_and_reported(host, server):
    answer = await host.op("http.get", {"url": server.url("/redirect"), "params": to(None, code=301)})
    assert answer["url"] == server.url("/echo")
    assert answer["redirects"] == [{"status": 301, "url": server.url("/redirect?to=%2Fecho&code=301")}]


async def test_redirect_is_returned_if_not_followed(host, server):
    params = {"url": server.url("/redirect"), "params": to(None), "follow_redirects": False}
    answer = await host.op("http.get", params)
    assert (answer["status"], answer["headers"]["location"]) == (302, "/echo")
    assert len(server.requests) == 1


async def test_redirects_are_limited(host, server):
    with pytest.raises(RedirectRefused) as caught:
        await host.op("http.get", {"url": server.url("/loop"), "max_redirects": 3})
    assert caught.value.code == "http.redirects"
    assert len(server.requests) == 4


async def test_each_hop_requires_a_grant(host, server, other):
    grant = f"http:port={server.port},network=loopback"
    with pytest.raises(OpDenied):
        await host.op("http.get", {"url": server.url("/redirect"), "params": to(other)}, grants=[grant])
    assert other.requests == []


async def test_redirect_within_the_origin_requires_a_grant_for_its_path(host, server):
    with pytest.raises(OpDenied):
        await host.op(
            "http.get",
            {"url": server.url("/redirect"), "params": to(None)},
            grants=["http:path=/redirect,network=loopback"],
        )
    assert len(server.requests) == 1


async def test_method_changed_by_a_redirect_requires_a_grant(host, server):
    with pytest.raises(OpDenied):
        await host.op(
            "http.post",
            {"url": server.url("/redirect"), "params": to(None)},
            grants=["http:method=POST,network=loopback"],
        )
    assert len(server.requests) == 1


async def test_headers_cookies_and_credential_are_not_sent_to_another_port(host, server, other):
    params = {
        "url": server.url("/redirect"),
        "params": to(other),
        "auth": "bearer",
        "headers": {"X-Mine": "1"},
        "cookies": {"c": "1"},
    }
    await host.op("http.get", params)
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert not {"authorization", "x-mine", "cookie"} & other.requests[0].headers.keys()


async def test_credential_is_not_sent_again_after_a_redirect_back(host, server, other):
    there_and_back = other.url("/redirect?to=") + server.url("/echo")
    params = {"url": server.url("/redirect"), "params": {"to": there_and_back}, "auth": "bearer"}
    await host.op("http.get", params)
    assert "authorization" not in server.requests[-1].headers


async def test_credential_is_sent_again_within_its_origin(host, server):
    await host.op("http.get", {"url": server.url("/redirect"), "params": to(None), "auth": "bearer"})
    assert server.requests[1].headers["authorization"] == f"Bearer {TOKEN}"


async def test_body_is_not_sent_to_another_origin(host, server, other):
    params = {"url": server.url("/redirect"), "params": to(other, code=307), "body": "private"}
    with pytest.raises(RedirectRefused) as caught:
        await host.op("http.post", params)
    assert caught.value.code == "http.redirect_body"
    assert other.requests == []


async def test_body_is_sent_again_within_its_origin(host, server):
    await host.op("http.post", {"url": server.url("/redirect"), "params": to(None, code=307), "body": "again"})
    assert [one.method for one in server.requests] == ["POST", "POST"]
    assert server.requests[0].body == server.requests[1].body


async def test_redirect_from_https_to_http_is_refused(open_host, tls_server, server, ca_file):
    async with open_host(ca_file=str(ca_file)) as host:
        with pytest.raises(RedirectRefused) as caught:
            await host.op("http.get", {"url": tls_server.url("/redirect"), "params": to(server)})
    assert caught.value.code == "http.downgrade"
    assert server.requests == []


async def test_redirect_to_a_file_is_refused(host, server):
    with pytest.raises(UrlInvalid):
        await host.op("http.get", {"url": server.url("/redirect"), "params": {"to": "file:///etc/passwd"}})


async def test_cookie_set_by_a_redirect_is_sent(host, server):
    await host.op("http.get", {"url": server.url("/redirect"), "params": to(None, cookie="a=1")})
    assert server.requests[1].headers["cookie"] == "a=1"


@pytest.mark.parametrize(
    ("handle", "sent"),
    [
        ("bearer", ("authorization", f"Bearer {TOKEN}")),
        ("apikey", ("x-api-key", TOKEN)),
        ("cookie", ("cookie", f"sid={TOKEN}")),
    ],
)
async def test_host_attaches_the_credential(host, server, credentials, handle, sent):
    answer = await host.op("http.get", {"url": server.url("/echo"), "auth": handle})
    assert sent in server.requests[0].headers.items()
    assert credentials.resolved == [(handle, server.origin)]
    assert TOKEN not in repr(answer), "an echoed credential is redacted"


@pytest.mark.parametrize(
    ("handle", "params"),
    [
        ("bearer", {"headers": {"AUTHORIZATION": "Bearer mine"}}),
        ("apikey", {"headers": {"X-API-Key": "mine"}}),
        ("cookie", {"cookies": {"sid": "mine"}}),
    ],
    ids=str,
)
async def test_skill_may_not_override_the_credential(host, server, handle, params):
    with pytest.raises(HeaderRefused):
        await host.op("http.get", {"url": server.url("/echo"), "auth": handle, **params})
    assert server.requests == []


async def test_skill_may_set_authorization_without_auth(host, server):
    await host.op("http.get", {"url": server.url("/echo"), "headers": {"Authorization": "Basic eA=="}})
    assert server.requests[0].headers["authorization"] == "Basic eA=="


async def test_credential_requires_a_grant(host, server):
    with pytest.raises(OpDenied):
        await host.op("http.get", {"url": server.url("/echo"), "auth": "bearer"}, grants=["http:network=loopback"])
    assert server.requests == []


async def test_missing_credential_stops_the_request(host, server):
    with pytest.raises(OpFailed) as caught:
        await host.op("http.get", {"url": server.url("/echo"), "auth": "missing"})
    assert caught.value.code == "secrets.missing"
    assert server.requests == []


async def test_credential_cannot_inject_a_header(host, server):
    with pytest.raises(HeaderRefused) as caught:
        await host.op("http.get", {"url": server.url("/echo"), "auth": "broken"})
    assert TOKEN not in caught.value.message
    assert server.requests == []


async def test_credential_is_not_resolved_for_a_denied_request(host, server, credentials):
    with pytest.raises(OpDenied):
        await host.op(
            "http.get", {"url": server.url("/echo"), "auth": "bearer"}, grants=["http:host=example.org", "secrets"]
        )
    assert credentials.resolved == []
