"""Conversion of statuses, bodies and stream events to errors."""

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from sideband_model_client import broken, not_a_model, refused, refused_inside

KEY = "sk-key-of-the-test-0123456789"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("\ud83d"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "msg", "detail", "code", "type", "status", "status_code"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.fixture
def service_access(access):
    return access("https://models.example.org/v1", key_hint="check the key", secrets=(f"Bearer {KEY}", KEY))


@pytest.mark.parametrize(
    ("status", "phrase", "retryable", "hint"),
    [
        (400, " (Bad Request)", False, "check `options`, which are sent unchanged"),
        (401, " (Unauthorized)", False, "check the key"),
        (402, " (Payment Required)", False, "credit"),
        (403, " (Forbidden)", False, "another model"),
        (404, " (Not Found)", False, "check `base_url` (https://models.example.org/v1)"),
        (408, " (Request Timeout)", True, "again"),
        (409, " (Conflict)", True, ""),
        (413, "", False, "shorten"),
        (422, "", False, ""),
        (425, " (Too Early)", True, ""),
        (429, " (Too Many Requests)", True, "wait"),
        (500, " (Internal Server Error)", True, "later"),
        (502, " (Bad Gateway)", True, "later"),
        (503, " (Service Unavailable)", True, "later"),
        (529, "", True, "overloaded"),
    ],
)
def test_status_determines_retryable_and_hint(service_access, status, phrase, retryable, hint):
    error = refused(service_access, status, '{"error": {"message": "not like that"}}', {})
    assert (error.code, error.status, error.retryable) == ("provider.refused", status, retryable)
    assert error.message.startswith(f"acme: HTTP {status}{phrase}")
    assert error.message.endswith(": not like that")
    assert hint in error.hint
    assert "not like that" in error.body


def test_hint_of_the_service_replaces_the_general_hint(service_access):
    custom = evolve(service_access, service=evolve(service_access.service, hints={400: "ask support"}))
    assert refused(custom, 400, "", {}).hint == "ask support"
    assert "credit" in refused(custom, 402, "", {}).hint


@pytest.mark.parametrize(("status", "hint"), [(401, "store a key"), (403, "use another model, or store a key")])
def test_hint_explains_how_to_set_a_key_if_none_was_sent(service_access, status, hint):
    assert refused(evolve(service_access, secrets=(), key_hint="store a key"), status, "", {}).hint == hint
    assert "a key" in refused(evolve(service_access, secrets=(), key_hint=""), status, "", {}).hint


def test_401_without_a_key_says_that_none_was_sent(service_access):
    body = {"error": {"message": "invalid key", "code": 401}}
    keyless = evolve(service_access, secrets=())
    assert "because no key was sent: invalid key" in refused(keyless, 401, json.dumps(body), {}).message
    assert "because no key was sent: invalid key" in refused_inside(keyless, body["error"], {}).message
    for error in (
        refused(service_access, 401, json.dumps(body), {}),
        refused_inside(service_access, body["error"], {}),
        refused(keyless, 403, json.dumps(body), {}),
    ):
        assert "no key" not in error.message


def test_response_that_arrived_whole_is_broken_for_good(service_access):
    error = broken(service_access, "no choices", retryable=False)
    assert not error.retryable
    assert "https://models.example.org/v1" in error.hint
    assert broken(service_access, "cut").retryable


@pytest.mark.parametrize(
    "body",
    [
        {"error": "not like that"},
        {"message": "not like that"},
        {"detail": "not like that"},
        {"detail": [{"msg": "not like that"}]},
        [{"error": {"message": "not like that"}}],
        {"error": {"code": "not like that"}},
        {"error": {"message": ["not like that"]}},
        "not like that",
    ],
    ids=str,
)
def test_message_is_found_in_every_known_error_format(service_access, body):
    assert "not like that" in refused(service_access, 400, json.dumps(body), {}).message
    assert refused(service_access, 400, "not like that", {}).message.endswith(": not like that")


@pytest.mark.parametrize(("body", "kind"), [("<html>busy</html>", ""), ("  <p>busy", ""), ("busy", "Text/HTML; x")])
def test_web_page_is_not_repeated_in_the_message(service_access, body, kind):
    error = refused(service_access, 503, body, {"content-type": kind})
    assert error.message == "acme: HTTP 503 (Service Unavailable)"
    assert error.body == body


def test_non_printable_characters_are_replaced(service_access):
    text = "a\x1b[31mb\nc\u202e"
    shown = "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}"
    assert refused(service_access, 400, json.dumps({"error": text}), {}).message.endswith(f": {shown}")
    assert refused_inside(service_access, text, {}).message.endswith(f": {shown}")
    assert broken(service_access, text).message == f"acme: {shown}"
    assert shown in refused(service_access, 302, "", {"location": text}).hint


def test_long_message_is_truncated_by_the_host_after_redaction(service_access):
    error = refused(service_access, 500, f"{'x' * 480} the password is hunter2-hunter2", {})
    error.clean(lambda text: text.replace("hunter2-hunter2", "[redacted]"))
    assert "hunter2" not in str(error.as_dict())
    error = refused(service_access, 500, "x" * 100_000, {})
    error.clean(str)
    assert len(error.message) < 3_000
    assert len(error.body) <= 4_000


@pytest.mark.parametrize("place", [f"see https://x/{KEY}", f"Bearer {KEY}"])
def test_echoed_key_is_removed_from_errors(service_access, place):
    headers = {"x-request-id": place, "location": place, "retry-after": place}
    for error in (
        refused(service_access, 400, json.dumps({"error": {"message": place}}), headers),
        refused(service_access, 302, place, headers),
        refused_inside(service_access, {"type": place, "message": place, "nested": [place]}, headers),
        refused_inside(service_access, place, headers, body=place),
        not_a_model(service_access, "a web page", place, headers),
        broken(service_access, place),
    ):
        assert KEY not in str(error.as_dict())


def test_rate_limit_headers_are_kept(service_access):
    headers = {
        "retry-after": "7",
        "x-ratelimit-reset-requests": "1s",
        "anthropic-ratelimit-tokens-reset": "z",
        "x": "1",
    }
    kept = {name: value for name, value in headers.items() if name != "x"}
    assert refused(service_access, 429, "", headers).headers == kept
    assert refused_inside(service_access, "slow down", headers).headers == kept


@pytest.mark.parametrize(
    ("advice", "status", "retryable"),
    [("false", 529, False), ("true", 400, True), (" TRUE ", 400, True), ("?", 500, True), ("?", 400, False)],
)
def test_x_should_retry_overrides_the_status(service_access, advice, status, retryable):
    assert refused(service_access, status, "", {"x-should-retry": advice}).retryable is retryable


@pytest.mark.parametrize("place", ["https://elsewhere.example.org/v1", ""])
def test_hint_of_a_redirect_names_the_target(service_access, place):
    hint = refused(service_access, 307, "", {"location": place} if place else {}).hint
    assert "redirects are not followed" in hint
    assert (place or "missing location") in hint


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "slow down", "code": 429}, 429),
        ({"message": "slow down", "code": "429"}, 429),
        ({"message": "slow down", "status": 503, "code": 429}, 503),
        ({"message": "slow down", "type": "rate_limit_exceeded", "code": None}, 429),
        ({"message": "slow down", "type": "invalid_request_error", "code": "context_length_exceeded"}, 400),
        ({"message": "slow down", "type": "Overloaded_Error"}, 529),
        ({"message": "slow down", "type": "billing_error"}, 402),
        ({"message": "slow down", "type": "request_too_large"}, 413),
        ({"message": "slow down", "type": "timeout_error"}, 504),
        ({"message": "slow down", "type": "something_new"}, None),
        ({"message": "slow down", "code": True}, None),
        ({"message": "slow down", "code": 200}, None),
        ({"message": "slow down"}, None),
        ("slow down", None),
    ],
    ids=str,
)
def test_error_in_a_stream_implies_a_status(service_access, error, status):
    found = refused_inside(service_access, error, {"x-should-retry": "false"})
    assert found.status == status
    assert found.retryable is (status in (None, 429) or status >= 500)
    assert "slow down" in found.message
    assert "slow down" in found.body


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ": overloaded_error: Overloaded"),
        ({"type": "overloaded_error"}, ": overloaded_error"),
        ({"type": 7, "message": "Overloaded"}, ": Overloaded"),
        ("no room", ": no room"),
        ({}, ""),
        (None, ""),
    ],
    ids=str,
)
def test_message_of_an_error_in_a_stream_names_its_type(service_access, error, detail):
    assert refused_inside(service_access, error, {}).message == f"acme: the response reports an error{detail}"


def test_body_of_an_error_in_a_stream_is_the_error_or_the_given_event(service_access):
    assert refused_inside(service_access, {"a": "ä"}, {}).body == '{"a":"ä"}'
    assert (
        refused_inside(service_access, {"a": 1}, {}, body='{"error": {"a": 1}, "id": 7}').body
        == '{"error": {"a": 1}, "id": 7}'
    )


def test_web_page_is_not_retryable(service_access):
    error = not_a_model(service_access, "a web page", "<html>", {})
    assert (error.status, error.retryable, error.body) == (200, False, "<html>")
    assert "https://models.example.org/v1 returned a web page" in error.message
    assert "`base_url`" in error.hint
    assert "https://api.acme.example/v1" in error.hint


def test_broken_stream_is_retryable(service_access):
    error = broken(service_access, "the response was cut off", "ReadError")
    assert (error.code, error.retryable, error.cause) == ("provider.stream", True, "ReadError")


def test_any_error_value_gives_a_printable_message(service_access):
    @given(VALUES, st.integers(100, 999))
    def check(value, status):
        for error in (
            refused_inside(service_access, value, {}),
            refused(service_access, status, json.dumps(value), {}),
            refused(service_access, status, json.dumps({"error": value}), {"content-type": "text/html"}),
        ):
            assert json.dumps(error.as_dict(), ensure_ascii=False).encode()
            assert error.message.isprintable()

    check()
