import json
import re

import pytest
from sideband.providers import ProviderRefused, ProviderUnreachable, StreamBroken

pytestmark = pytest.mark.anyio


async def failure(host, listen, kind=ProviderRefused):
    with pytest.raises(kind) as caught:
        await listen(host)
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "hint"),
    [
        (400, "invalid_request_error", False, "`betas`"),
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
    assert not tls_server.requests


async def test_configured_authority_is_trusted(open_host, tls_server, listen, say):
    tls_server.reply(say.start(), *say.text(0, "safe"), *say.end())
    async with open_host(base_url=tls_server.origin, ca_file=str(tls_server.ca_file)) as host:
        assert (await listen(host))[1].text == "safe"


WHOLE = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "It rains."},
        {"type": "tool_use", "id": "toolu_1", "name": "sky", "input": {"at": 1}},
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("stop", [{"stop_reason": "tool_use"}, {"stop_reason": None}, {}], ids=str)
async def test_whole_message_is_an_answer(host, server, listen, kind, stop):
    server.reply(json.dumps({**WHOLE, **stop}).encode(), kind=kind)
    deltas, message = await listen(host)
    assert [one.type for one in deltas] == ["thinking", "text", "tool_call"]
    assert (message.text, message.stop, message.tool_calls[0].arguments) == ("It rains.", "tool_calls", {"at": 1})
    assert (message.usage.input, message.usage.output) == (7, 3)
    assert message.content[0].signature == "c2ln"


@pytest.mark.parametrize("body", [b'{"choices": []}', b"[]", b"all is well"], ids=str)
async def test_body_other_than_a_message_is_refused_for_good(host, server, listen, body):
    server.reply(body, kind="text/plain" if body.isascii() and body[:1] == b"a" else "application/json")
    error = await failure(host, listen)
    assert not error.retryable
    assert body.decode() in error.body


async def test_truncated_json_body_may_be_retried(host, server, listen):
    server.reply(json.dumps(WHOLE).encode()[:-2], kind="application/json")
    assert (await failure(host, listen, StreamBroken)).retryable


async def test_usage_of_a_failed_response_is_reported(host, server, listen, say):
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.reply(say.start({"input_tokens": 7}), *say.text(0, "x"), overloaded)
    assert (await failure(host, listen)).usage.input == 7
    server.reply(say.start({"input_tokens": 7}), *say.text(0, "x"))
    assert (await failure(host, listen, StreamBroken)).usage.input == 7


async def test_error_for_a_request_without_a_key_explains_how_to_set_one(host, server, listen):
    server.refuse(401, {"type": "authentication_error", "message": "invalid x-api-key"})
    error = await failure(host, listen)
    assert "HTTP 401 (Unauthorized) because no key was sent: invalid x-api-key" in error.message
    assert f"sideband secrets set anthropic --origin {server.origin}" in error.hint
    assert "wrong" not in error.hint
