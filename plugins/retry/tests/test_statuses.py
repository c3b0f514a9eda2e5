import pytest
from sideband.hooks import Compact, GiveUp, Park, Retry
from sideband_retry._classes import CLASSES, Follows

WITHOUT_A_WORD = [(status, kind) for kind, one in CLASSES.items() for status in one.statuses]
FOLLOWS = {Follows.RETRY: Retry, Follows.ONCE: Retry, Follows.COMPACT: Compact, Follows.GIVE_UP: GiveUp}


@pytest.mark.parametrize(("status", "kind"), WITHOUT_A_WORD, ids=[f"{status}" for status, _ in WITHOUT_A_WORD])
def test_a_status_alone_decides(ask, status, kind):
    answer = ask(status)
    assert (answer.kind, type(answer)) == (kind.value, FOLLOWS[CLASSES[kind].follows])


def test_no_status_belongs_to_two_classes():
    statuses = [status for status, _ in WITHOUT_A_WORD]
    assert len(statuses) == len(set(statuses))


@pytest.mark.parametrize(("status", "kind"), [(418, "format_error"), (300, "format_error"), (507, "server_error")])
def test_an_unknown_status_is_decided_by_its_class(ask, status, kind):
    assert ask(status).kind == kind


@pytest.mark.parametrize("status", [409, 425, 408])
def test_a_conflict_an_early_request_and_a_timeout_are_tried_again(ask, status):
    assert isinstance(ask(status), Retry)


def test_403_without_a_word_about_a_key_is_the_key(ask):
    assert ask(403, "<html>no</html>").kind == "auth"


def test_402_that_says_when_to_come_again_is_a_limit(ask):
    answer = ask(402, "Payment Required", headers={"retry-after": "30"})
    assert (type(answer), answer.kind, answer.delay) == (Retry, "rate_limit", 30.0)


def test_402_that_resets_much_later_parks(ask, now):
    answer = ask(402, headers={"retry-after": "86400"})
    assert (type(answer), answer.until) == (Park, now + 86_400)


def test_429_about_money_is_a_limit_if_a_reset_is_named(ask):
    body = "insufficient_quota: try again in 5 days"
    assert type(ask(429, body)) is Park
    assert type(ask(429, "insufficient_quota")) is GiveUp


def test_headers_of_limits_are_no_reset_of_an_empty_account(ask):
    headers = {"x-ratelimit-reset-requests": "1s", "anthropic-ratelimit-tokens-reset": "2025-11-22T12:00:05Z"}
    assert ask(429, "insufficient_quota", headers=headers).kind == "billing"


@pytest.mark.parametrize("body", ["insufficient_quota", "context length", "unauthorized", "model_not_found", "timeout"])
def test_words_do_not_turn_a_status_into_what_it_can_not_mean(ask, body):
    assert ask(529, body).kind == "overloaded"


def test_the_status_inside_an_answer_counts_only_where_there_is_no_other(ask):
    body = '{"error": {"code": 401, "message": "x"}}'
    assert ask(200, body).kind == "auth"
    assert ask(None, body).kind == "auth"
    assert ask(503, body).kind == "overloaded"


@pytest.mark.parametrize("code", ["4.01", "4011", '"abc"', "200", "null", "-401"])
def test_what_is_no_status_is_none(ask, code):
    assert ask(None, f'{{"error": {{"code": {code}}}}}').kind == "unknown"
