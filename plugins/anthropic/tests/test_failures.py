import json
import re

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
        (400, "invalid_request_error", False, "`betas`"),
        (401, "authentication_error", False, "ANTHROPIC_API_KEY"),
        (402, "billing_error", False, "credit"),
        (403, "permission_error", False, "another model"),
        (404, "not_found_error", False, "sideband models list"),
        (413, "request_too_large", False, "shorten"),
        (429, "rate_limit_error", True, "wait"),
        (500, "api_error", True, "later"),
        (503, "api_error", True, "later"),
        (529, "overloaded_error", True, "overloaded"),
    ],
)
async def test_error_status_gives_the_message_of_the_service_and_a_hint(
    host, server, listen, *, status, kind, retryable, hint
):
    server.refuse(status, {"type": kind, "message": "the reason"})
    error = await failure(host, listen)
    assert (error.status, error.retryable) == (status, retryable)
    assert re.fullmatch(rf"anthropic: HTTP {status}( \([A-Z][A-Za-z ]+\))?: the reason", error.message)
    assert hint in error.hint
    assert json.loads(error.body)["error"]["type"] == kind


async def test_refused_connection_is_unreachable(open_host, server, listen):
    origin = server.origin
    server.close()
    async with open_host(base_url=origin) as host:
        error = await failure(host, listen, ProviderUnreachable)
    assert origin in error.message
    assert error.cause == "ConnectError"
    assert error.retryable


async def test_untrusted_certificate_ends_the_call(open_host, tls_server, listen):
    async with open_host(base_url=tls_server.origin) as host:
        error = await failure(host, listen, ProviderUnreachable)
    assert "ca_file" in error.hint
    assert not error.retryable
    assert not tls_server.seen


async def test_configured_authority_is_trusted(open_host, tls_server, authority, *, listen, say, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls_server.reply(say.start(), *say.text(0, "safe"), *say.end())
    async with open_host(base_url=tls_server.origin, ca_file=str(tmp_path / "ca.pem")) as host:
        assert (await listen(host))[1].text == "safe"
