"""What a status, a body and an event mean, and what is told of them."""

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
def there(access):
    return access("https://models.example.org/v1", key_hint="check the key", secrets=(f"Bearer {KEY}", KEY))


@pytest.mark.parametrize(
    ("status", "phrase", "retryable", "hint"),
    [
        (400, " (Bad Request)", False, "`options` are sent as they are"),
        (401, " (Unauthorized)", False, "check the key"),
        (402, " (Payment Required)", False, "credit"),
        (403, " (Forbidden)", False, "another model"),
        (404, " (Not Found)", False, "`sideband models list` shows the models; check `base_url` (https://models.exam"),
        (408, " (Request Timeout)", True, "again"),
        (409, " (Conflict)", True, ""),
        (413, "", False, "shorter"),
        (422, "", False, ""),
        (425, " (Too Early)", True, ""),
        (429, " (Too Many Requests)", True, "wait"),
        (500, " (Internal Server Error)", True, "later"),
        (502, " (Bad Gateway)", True, "later"),
        (503, " (Service Unavailable)", True, "later"),
        (529, "", True, "overloaded"),
    ],
)
def test_a_status_says_what_can_be_done(there, status, phrase, retryable, hint):
    error = refused(there, status, '{"error": {"message": "not like that"}}', {})
    assert (error.code, error.status, error.retryable) == ("provider.refused", status, retryable)
    assert error.message.startswith(f"acme: HTTP {status}{phrase}")
    assert error.message.endswith(": not like that")
    assert hint in error.hint
    assert "not like that" in error.body


def test_a_service_may_know_better_what_can_be_done(there):
    knowing = evolve(there, service=evolve(there.service, hints={400: "ask somebody"}))
    assert refused(knowing, 400, "", {}).hint == "ask somebody"
    assert "credit" in refused(knowing, 402, "", {}).hint


@pytest.mark.parametrize(("status", "hint"), [(401, "store a key"), (403, "use another model, or store a key")])
def test_where_no_key_was_sent_the_ways_to_give_one_are_told(there, status, hint):
    assert refused(evolve(there, secrets=(), key_hint="store a key"), status, "", {}).hint == hint
    assert "a key" in refused(evolve(there, secrets=(), key_hint=""), status, "", {}).hint


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
)
def test_servers_tell_errors_in_many_forms(there, body):
    assert "not like that" in refused(there, 400, json.dumps(body), {}).message
    assert refused(there, 400, "not like that", {}).message.endswith(": not like that")


@pytest.mark.parametrize(("body", "kind"), [("<html>busy</html>", ""), ("  <p>busy", ""), ("busy", "Text/HTML; x")])
def test_a_web_page_is_not_repeated_in_the_message(there, body, kind):
    error = refused(there, 503, body, {"content-type": kind})
    assert error.message == "acme: HTTP 503 (Service Unavailable)"
    assert error.body == body


def test_what_can_not_be_seen_is_shown_as_a_sign(there):
    said = "a\x1b[31mb\nc\u202e"
    shown = "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}"
    assert refused(there, 400, json.dumps({"error": said}), {}).message.endswith(f": {shown}")
    assert refused_inside(there, said, {}).message.endswith(f": {shown}")
    assert broken(there, said).message == f"acme: {shown}"
    assert shown in refused(there, 302, "", {"location": said}).hint


def test_a_long_message_is_cut_by_the_host_once_secrets_are_out_of_it(there):
    error = refused(there, 500, f"{'x' * 480} the password is hunter2-hunter2", {})
    error.clean(lambda text: text.replace("hunter2-hunter2", "[redacted]"))
    assert "hunter2" not in str(error.as_dict())
    error = refused(there, 500, "x" * 100_000, {})
    error.clean(str)
    assert len(error.message) < 3_000
    assert len(error.body) <= 4_000


@pytest.mark.parametrize("place", [f"see https://x/{KEY}", f"Bearer {KEY}"])
def test_the_key_is_in_no_error_even_if_the_server_repeats_it(there, place):
    headers = {"x-request-id": place, "location": place, "retry-after": place}
    for error in (
        refused(there, 400, json.dumps({"error": {"message": place}}), headers),
        refused(there, 302, place, headers),
        refused_inside(there, {"type": place, "message": place, "nested": [place]}, headers),
        refused_inside(there, place, headers, body=place),
        not_a_model(there, "a web page", place, headers),
        broken(there, place),
    ):
        assert KEY not in str(error.as_dict())


def test_when_to_come_again_is_kept(there):
    headers = {
        "retry-after": "7",
        "x-ratelimit-reset-requests": "1s",
        "anthropic-ratelimit-tokens-reset": "z",
        "x": "1",
    }
    kept = {name: value for name, value in headers.items() if name != "x"}
    assert refused(there, 429, "", headers).headers == kept
    assert refused_inside(there, "slow down", headers).headers == kept


@pytest.mark.parametrize(
    ("told", "status", "retryable"),
    [("false", 529, False), ("true", 400, True), (" TRUE ", 400, True), ("?", 500, True), ("?", 400, False)],
)
def test_the_service_may_say_whether_to_try_again(there, told, status, retryable):
    assert refused(there, status, "", {"x-should-retry": told}).retryable is retryable


@pytest.mark.parametrize("place", ["https://elsewhere.example.org/v1", ""])
def test_a_redirect_is_shown_and_not_followed(there, place):
    hint = refused(there, 307, "", {"location": place} if place else {}).hint
    assert "redirects are not followed" in hint
    assert (place or "elsewhere") in hint


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
)
def test_an_error_inside_an_answer_implies_a_status(there, error, status):
    told = refused_inside(there, error, {"x-should-retry": "false"})
    assert told.status == status
    assert told.retryable is (status in (None, 429) or status >= 500)
    assert "slow down" in told.message
    assert "slow down" in told.body


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ": overloaded_error: Overloaded"),
        ({"type": "overloaded_error"}, ": overloaded_error"),
        ({"type": 7, "message": "Overloaded"}, ": Overloaded"),
        ("no room", ": no room"),
        ({}, ""),
        (None, ""),
    ],
)
def test_an_error_inside_an_answer_is_told_with_its_kind(there, error, said):
    assert refused_inside(there, error, {}).message == f"acme: an error instead of an answer{said}"


def test_the_body_of_an_error_inside_an_answer_is_the_error_or_the_whole_event(there):
    assert refused_inside(there, {"a": "ä"}, {}).body == '{"a":"ä"}'
    assert (
        refused_inside(there, {"a": 1}, {}, body='{"error": {"a": 1}, "id": 7}').body == '{"error": {"a": 1}, "id": 7}'
    )


def test_what_is_no_model_is_not_asked_again(there):
    error = not_a_model(there, "a web page", "<html>", {})
    assert (error.status, error.retryable, error.body) == (200, False, "<html>")
    assert error.message == "acme: https://models.example.org/v1 answered with a web page instead of a model's answer"
    assert error.hint == "set `base_url` to the address of the API itself, in the form of https://api.acme.example/v1"


def test_what_is_broken_is_asked_again(there):
    error = broken(there, "the answer ended before its end", "ReadError")
    assert (error.code, error.retryable, error.cause) == ("provider.stream", True, "ReadError")


def test_whatever_an_error_says_can_be_told(there):
    @given(VALUES, st.integers(100, 999))
    def check(said, status):
        for error in (
            refused_inside(there, said, {}),
            refused(there, status, json.dumps(said), {}),
            refused(there, status, json.dumps({"error": said}), {"content-type": "text/html"}),
        ):
            assert json.dumps(error.as_dict(), ensure_ascii=False).encode()
            assert error.message.isprintable()

    check()
