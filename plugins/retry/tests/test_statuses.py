import pytest
from sideband.hooks import Compact, GiveUp, Park, Retry
from sideband_retry._classes import CLASSES, Follows

STATUSES = [(status, kind) for kind, one in CLASSES.items() for status in one.statuses]
FOLLOWS = {Follows.RETRY: Retry, Follows.ONCE: Retry, Follows.COMPACT: Compact, Follows.GIVE_UP: GiveUp}


@pytest.mark.parametrize(("status", "kind"), STATUSES, ids=[f"{status}" for status, _ in STATUSES])
def test_status_without_a_text_decides(ask, status, kind):
    answer = ask(status)
    assert (answer.kind, type(answer)) == (kind.value, FOLLOWS[CLASSES[kind].follows])


def test_status_belongs_to_one_class():
    statuses = [status for status, _ in STATUSES]
    assert len(statuses) == len(set(statuses))


@pytest.mark.parametrize(("status", "kind"), [(418, "format_error"), (300, "format_error"), (507, "server_error")])
def test_unlisted_status_is_decided_by_its_range(ask, status, kind):
    assert ask(status).kind == kind


@pytest.mark.parametrize("status", [409, 425, 408])
def test_temporary_client_errors_are_retried(ask, status):
    assert isinstance(ask(status), Retry)


def test_403_without_a_known_text_is_an_auth_failure(ask):
    assert ask(403, "<html>no</html>").kind == "auth"


def test_402_with_a_named_wait_is_a_rate_limit(ask):
    answer = ask(402, "Payment Required", headers={"retry-after": "30"})
    assert (type(answer), answer.kind, answer.delay) == (Retry, "rate_limit", 30.0)


def test_402_that_resets_much_later_parks(ask, now):
    answer = ask(402, headers={"retry-after": "86400"})
    assert (type(answer), answer.until) == (Park, now + 86_400)


def test_429_about_billing_with_a_reset_is_a_rate_limit(ask):
    body = "insufficient_quota: try again in 5 days"
    assert type(ask(429, body)) is Park
    assert type(ask(429, "insufficient_quota")) is GiveUp


def test_limit_headers_do_not_reset_a_billing_failure(ask):
    headers = {"x-ratelimit-reset-requests": "1s", "anthropic-ratelimit-tokens-reset": "2025-11-22T12:00:05Z"}
    assert ask(429, "insufficient_quota", headers=headers).kind == "billing"


@pytest.mark.parametrize("body", ["insufficient_quota", "context length", "unauthorized", "model_not_found", "timeout"])
def test_text_does_not_override_an_unambiguous_status(ask, body):
    assert ask(529, body).kind == "overloaded"


def test_status_in_the_body_is_used_without_an_http_error_status(ask):
    body = '{"error": {"code": 401, "message": "x"}}'
    assert ask(200, body).kind == "auth"
    assert ask(None, body).kind == "auth"
    assert ask(503, body).kind == "overloaded"


@pytest.mark.parametrize("code", ["4.01", "4011", '"abc"', "200", "null", "-401"])
def test_invalid_status_in_the_body_is_ignored(ask, code):
    assert ask(None, f'{{"error": {{"code": {code}}}}}').kind == "unknown"
