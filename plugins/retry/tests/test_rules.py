import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.hooks import Compact, GiveUp, ModelError, Park, Retry
from sideband.providers import (
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnreachable,
    StreamBroken,
)
from sideband_retry._classes import CLASSES, ErrorKind
from sideband_retry._rules import RetryRules
from sideband_retry.plugin import Config

BAD = {
    "rate_limit": 429,
    "overloaded": 529,
    "server_error": 500,
    "timeout": 504,
    "auth": 401,
    "billing": 402,
    "format_error": 400,
    "model_not_found": 410,
    "content_blocked": 451,
}


@pytest.fixture
def ask_about(ask):
    """Return the reaction to an error raised by a provider."""
    return lambda error, **about: ask(**{**error.as_dict(), **about})


def test_overlong_conversation_is_compacted_once(ask):
    assert ask(413) == Compact("context_overflow")
    answer = ask(413, compacted=True)
    assert (type(answer), answer.kind) == (GiveUp, "context_overflow")
    assert "larger context" in answer.hint


@pytest.mark.parametrize("kind", sorted(BAD))
def test_x_should_retry_false_prevents_a_retry(ask, kind):
    assert isinstance(ask(BAD[kind], headers={"x-should-retry": "false"}), GiveUp)


@pytest.mark.parametrize("kind", sorted(BAD))
def test_x_should_retry_true_retries_within_the_limits(ask, kind):
    assert ask(BAD[kind], headers={"x-should-retry": "true"}) == Retry(0, kind)
    assert isinstance(ask(BAD[kind], headers={"x-should-retry": "true"}, attempt=4), GiveUp)


def test_rate_limit_without_retry_but_with_a_reset_parks(ask, now):
    answer = ask(429, headers={"x-should-retry": "false", "retry-after": "5"})
    assert (type(answer), answer.until) == (Park, now + 5)


def test_x_should_retry_does_not_shorten_the_named_wait(ask):
    assert isinstance(ask(400, headers={"x-should-retry": "true", "retry-after": "4000"}), Park)


def test_broken_stream_is_retried(ask_about):
    assert ask_about(StreamBroken("openai", "the answer broke off")) == Retry(0, "stream_broken")


def test_timeout_is_retried(ask_about):
    assert ask_about(ProviderTimeout("openai", "no answer within 60 s")) == Retry(0, "timeout")
    assert ask_about(ProviderTimeout("openai", "silent"), code="op.timeout") == Retry(0, "timeout")


def test_unreachable_server_is_retried(ask_about):
    error = ProviderUnreachable("openai", "no answer from https://api.example: name not known", cause="ConnectError")
    assert [type(ask_about(error, attempt=number)) for number in (1, 3, 4)] == [Retry, Retry, GiveUp]


@pytest.mark.parametrize("text", ["Connection refused", "no answer from http://127.0.0.1:11434", "http://localhost:1"])
def test_refused_connection_gets_two_quick_retries_and_a_hint(make_rules, make_event, text):
    rules = make_rules(chance=1.0)
    error = ProviderUnreachable("ollama", text).as_dict()
    answers = [rules.answer(make_event(**error, model="ollama:m", attempt=number)) for number in (1, 2, 3)]
    assert [type(one) for one in answers] == [Retry, Retry, GiveUp]
    assert [one.delay for one in answers[:2]] == [0.5, 1.0]
    assert "start it" in answers[2].hint


def test_untrusted_certificate_is_not_retried(ask_about):
    answer = ask_about(
        ProviderUnreachable("openai", "cannot establish a secure connection to https://x: wrong version number")
    )
    assert isinstance(answer, GiveUp)
    assert "certificate authority" in answer.hint


@pytest.mark.parametrize("code", ["provider.unconfigured", "llm.model", "plugin.import", "config.invalid"])
def test_configuration_error_is_given_up_with_its_own_hint(ask, code):
    assert ask(code=code, hint="set OPENAI_API_KEY") == GiveUp("unconfigured", "set OPENAI_API_KEY")


def test_unconfigured_provider_keeps_its_hint(ask_about):
    error = ProviderUnconfigured("openai", "no key", hint="set OPENAI_API_KEY")
    assert ask_about(error).hint == "set OPENAI_API_KEY"


@pytest.mark.parametrize("code", ["op.denied", "effect.unknown", "limit.in_flight", "ledger.failed", "op.params"])
def test_error_that_is_not_a_providers_is_not_answered(ask, code):
    assert ask(code=code) is None


def test_unknown_error_is_retried_once(ask_about):
    error = ProviderError("openai", "it failed with KeyError: 'x'", cause="KeyError")
    assert [ask_about(error, attempt=number).kind for number in (1, 2)] == ["unknown"] * 2
    assert [type(ask_about(error, attempt=number)) for number in (1, 2)] == [Retry, GiveUp]


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, one in CLASSES.items() for name in one.exceptions], ids=str
)
def test_exception_name_decides_without_other_signs(ask_about, kind, name):
    assert ask_about(ProviderError("openai", "it failed", cause=name)).kind == kind.value


def test_text_takes_precedence_over_the_exception_name(ask_about):
    assert ask_about(ProviderError("openai", "invalid api key", cause="ConnectError")).kind == "auth_permanent"


def test_error_type_takes_precedence_over_the_text(ask_about):
    assert ask_about(StreamBroken("openai", "it ended in: rate limit")).kind == "stream_broken"


def test_headers_of_a_provider_refusal_are_read(ask_about):
    error = ProviderRefused("openai", "status 429", status=429, headers={"Retry-After": "7", "Set-Cookie": "x"})
    assert ask_about(error) == Retry(7, "rate_limit")


GIVEN_UP = {
    **BAD,
    "auth_permanent": (401, "invalid api key"),
    "unreachable": (None, "x", "provider.unreachable"),
    "stream_broken": (None, "x", "provider.stream"),
    "unknown": (None, "x"),
    "context_overflow": 413,
    "unconfigured": (None, "", "llm.provider"),
    "tool_use_failed": (400, "tool_use_failed"),
}


def test_table_covers_every_class():
    assert set(GIVEN_UP) == {kind.value for kind in ErrorKind}


@pytest.mark.parametrize(
    ("kind", "words"),
    {
        "rate_limit": "higher limits",
        "overloaded": "fallbacks",
        "server_error": "status page",
        "timeout": "timeout",
        "stream_broken": "proxy",
        "unreachable": "the address of openai",
        "context_overflow": "shorter message",
        "auth": "check the key of openai",
        "auth_permanent": "create a new key",
        "billing": "billing page of openai",
        "model_not_found": "sideband models list",
        "content_blocked": "rewrite or rewind",
        "format_error": "choose a model",
        "unconfigured": "set the key",
        "tool_use_failed": "fewer tools",
        "unknown": "log",
    }.items(),
)
def test_given_up_failure_has_a_hint(ask, kind, words):
    failure = GIVEN_UP[kind]
    status, body, code = (*failure, "provider.refused")[:3] if isinstance(failure, tuple) else (failure, "", "")
    answer = ask(status, body, code=code, attempt=9, compacted=True)
    assert (type(answer), answer.kind) == (GiveUp, kind)
    assert words in answer.hint


def test_response_that_can_never_be_read_is_given_up_with_its_own_hint(ask_about):
    error = StreamBroken("openai", "the response has no answer", hint="check the address", retryable=False)
    assert ask_about(error) == GiveUp("format_error", "check the address")


def test_unsupported_input_is_given_up_with_its_own_hint(ask):
    assert ask(code="provider.input", hint="send a WAV") == GiveUp("format_error", "send a WAV")


@pytest.mark.parametrize("body", ["", "invalid api key"])
def test_hint_of_the_provider_about_its_key_is_kept(ask_about, body):
    error = ProviderRefused("openai", "HTTP 401 because no key was sent", status=401, body=body, hint="set A_KEY")
    assert ask_about(error).hint == "set A_KEY"


def test_failed_tool_use_is_retried_once(ask):
    body = json.dumps({"error": {"type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<"}})
    assert ask(400, body) == Retry(0, "tool_use_failed")
    assert isinstance(ask(400, body, attempt=2), GiveUp)


@pytest.mark.parametrize(("status", "body"), [(404, "404 page not found"), (301, ""), (200, "<html>"), (405, "")])
def test_wrong_address_has_its_own_hint(ask, status, body):
    assert "/v1" in ask(status, body).hint


def test_hint_without_a_model_name_is_readable(ask):
    assert "the provider" in ask(401, model="").hint


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "anthropic-ratelimit-x-reset"])
PIECES = st.sampled_from(
    ["try again in ", "resets ", "9" * 9, "-", ":", "2025-02-30", "0000-01-01", "pm", "(", "UTC", ")", "+14:00", " at "]
    + [phrase for one in CLASSES.values() for phrase in one.phrases[:3]]
)


ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from(["provider.refused", "provider.failed", ""]),
        "status": st.integers(-1, 1_000) | ANYTHING,
        "body": ANYTHING | st.text() | st.lists(PIECES).map("".join) | ANYTHING.map(json.dumps),
        "message": ANYTHING,
        "cause": ANYTHING,
        "headers": st.dictionaries(NAMES, st.text() | st.floats().map(str) | st.lists(PIECES).map("".join)) | ANYTHING,
    },
)


@given(error=ERRORS, attempt=st.integers(1, 10))
def test_arbitrary_error_is_answered(error, attempt):
    answer = RetryRules(Config()).answer(ModelError("r1", "a:b", error, attempt=attempt))
    assert isinstance(answer, Retry | Compact | Park | GiveUp)
    assert answer.kind in {kind.value for kind in ErrorKind}
    if isinstance(answer, Retry):
        assert 0 <= answer.delay <= 180
    else:
        assert isinstance(answer, Compact) or answer.hint
