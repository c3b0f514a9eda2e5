import json

import pytest
from sideband.providers import ProviderRefused, ProviderUnreachable

pytestmark = pytest.mark.anyio


async def failure(host, listen, kind=ProviderRefused):
    with pytest.raises(kind) as caught:
        await listen(host)
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "hint"),
    [
        (400, "invalid_request_error", False, "does not take"),
        (401, "authentication_error", False, "ANTHROPIC_API_KEY"),
        (402, "billing_error", False, "credit"),
        (403, "permission_error", False, "another model"),
        (404, "not_found_error", False, "sideband models list"),
        (413, "request_too_large", False, "shorter"),
        (429, "rate_limit_error", True, "wait"),
        (500, "api_error", True, "later"),
        (503, "api_error", True, "later"),
        (529, "overloaded_error", True, "overloaded"),
    ],
)
async def test_an_error_of_the_service_says_what_it_said_and_what_to_do(
    host, server, listen, *, status, kind, retryable, hint
):
    server.refuse(status, {"type": kind, "message": "it said why"})
    error = await failure(host, listen)
    assert (error.status, error.retryable) == (status, retryable)
    assert error.message == f"anthropic: HTTP {status}: it said why"
    assert hint in error.hint
    assert json.loads(error.body)["error"]["type"] == kind


async def test_what_tells_when_to_come_again_is_kept(host, server, listen):
    headers = [("Retry-After", "3"), ("anthropic-ratelimit-requests-reset", "2026-11-22T00:00:00Z"), ("X-Other", "no")]
    server.refuse(429, {"type": "rate_limit_error", "message": "slow"}, headers)
    assert (await failure(host, listen)).headers == {
        "retry-after": "3",
        "anthropic-ratelimit-requests-reset": "2026-11-22T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("told", "status", "retryable"), [("false", 529, False), ("true", 400, True), ("?", 500, True)]
)
async def test_the_service_may_say_whether_to_try_again(host, server, listen, *, told, status, retryable):
    server.refuse(status, {"type": "api_error", "message": "x"}, [("X-Should-Retry", told)])
    assert (await failure(host, listen)).retryable is retryable


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("", "anthropic: HTTP 502"),
        ("<html><title>Bad Gateway</title></html>", "anthropic: HTTP 502"),
        ("upstream\x1b[2J\nfailed", "anthropic: HTTP 502: upstream [2J failed"),
        ('{"error": "flat"}', "anthropic: HTTP 502: flat"),
        ('{"detail": "of a proxy"}', "anthropic: HTTP 502: of a proxy"),
        ('{"error": {"message": ["no", "text"]}}', "anthropic: HTTP 502"),
    ],
)
async def test_errors_of_whatever_is_between_are_understood(host, server, listen, body, shown):
    server.refuse(502, body)
    assert (await failure(host, listen)).message == shown


async def test_of_an_error_without_end_only_the_beginning_is_read(host, server, listen):
    server.refuse(500, "x" * 10_000_000)
    error = await failure(host, listen)
    assert len(error.message) < 70_000
    assert len(error.body) < 70_000


async def test_a_redirect_is_not_followed(host, server, listen):
    server.refuse(307, "", [("Location", "https://elsewhere.example.org/v1/messages")])
    error = await failure(host, listen)
    assert error.status == 307
    assert "elsewhere.example.org" in error.hint
    assert len(server.seen) == 1


async def test_no_connection_is_named_with_its_cause(open_host, server, listen):
    origin = server.origin
    server.close()
    async with open_host(base_url=origin) as host:
        error = await failure(host, listen, ProviderUnreachable)
    assert origin in error.message
    assert error.cause == "ConnectError"
    assert error.retryable


async def test_a_server_that_speaks_no_http_is_unreachable(host, server, listen):
    server.replies.append(b"220 welcome to this mail server\r\n")
    assert (await failure(host, listen, ProviderUnreachable)).cause == "RemoteProtocolError"


async def test_a_certificate_that_nobody_trusts_ends_the_call(open_host, tls_server, listen):
    async with open_host(base_url=tls_server.origin) as host:
        error = await failure(host, listen, ProviderUnreachable)
    assert "ca_file" in error.hint
    assert not error.retryable
    assert not tls_server.seen


async def test_a_certificate_of_a_named_authority_is_trusted(
    open_host, tls_server, authority, *, listen, say, tmp_path
):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls_server.reply(say.start(), *say.text(0, "safe"), *say.end())
    async with open_host(base_url=tls_server.origin, ca_file=str(tmp_path / "ca.pem")) as host:
        assert (await listen(host))[1].text == "safe"


async def test_proxies_and_certificates_of_the_environment_are_not_used(host, server, listen, say, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    server.reply(say.start(), *say.text(0, "direct"), *say.end())
    assert (await listen(host))[1].text == "direct"
