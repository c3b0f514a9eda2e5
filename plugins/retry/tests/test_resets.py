from datetime import UTC, datetime

import pytest
from sideband.hooks import Park, Retry
from sideband_retry._resets import LONGEST

DAY = 86_400.0


def at(*parts):
    return datetime(*parts, tzinfo=UTC).timestamp()


@pytest.fixture
def wait_for(ask, now):
    """Return the wait after a rate limit: before a retry without jitter, or until the parked run is resumed."""

    def wait(body="", **headers):
        answer = ask(429, body, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return answer.until - now if isinstance(answer, Park) else answer.delay

    return wait


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("7.5", 7.5),
        (" 60 ", 60),
        ("0", 0),
        ("6m0s", 360),
        ("120ms", 0.12),
        ("1d2h3m4s", DAY + 2 * 3_600 + 184),
        ("Sat, 22 Nov 2025 12:01:00 GMT", 60),
        ("Sat, 22 Nov 2025 11:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("2025-11-22T12:00:30Z", 30),
        ("2025-11-22T14:00:30+02:00", 30),
        ("1763812860", 60),
        ("1763812860000", 60),
        ("99999999999", LONGEST),
        ("1e300", LONGEST),
        ("9999999999999999999999999", LONGEST),
    ],
)
def test_retry_after_header_is_parsed(wait_for, value, seconds):
    assert wait_for(retry_after=value) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "-5", "nan", "inf", "-inf", "soon", "1e999", "\x00", "٣m", "Thu, 99 Foo 2025"])
def test_invalid_retry_after_is_ignored(wait_for, value):
    assert wait_for(retry_after=value) == 0
    assert wait_for("try again in 9s", retry_after=value) == 9


def test_retry_after_ms_takes_precedence(wait_for):
    assert wait_for(retry_after_ms="1500", retry_after="2") == 1.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20s.", 20),
        ("Please try again in 6ms.", 0.006),
        ("Please try again in 1h2m3.5s. Visit us.", 3_723.5),
        ("Please retry in 34.074824224s.", 34.074824224),
        ("Please retry after 26 seconds", 26),
        ("Try again in 5 minutes", 300),
        ("try again in about 2 hours", 7_200),
        ("wait 30 seconds", 30),
        ("Please wait for 1 minute and 5 seconds", 65),
        ("Your quota resets in 5 days", 5 * DAY),
        ("resets in 5 days, 3 hours", 5 * DAY + 3 * 3_600),
        ("available again in 2 weeks", 14 * DAY),
        ("请在 20 秒后重试", 20),
        ("请1分钟后重试", 60),
        ("3小时之后再试", 3 * 3_600),
        ('{"error": {"details": [{"retryDelay": "34s"}]}}', 34),
        ('{"retry_after": 12.5}', 12.5),
        ('{"retryAfterMs": 1500}', 1.5),
        ('{"resets_in_seconds": 529498}', 529_498),
        ('{"resets_at": 1763812860}', 60),
        ('{"reset_at": "2025-11-22T12:01:00Z"}', 60),
        ('{"headers": {"X-RateLimit-Reset": "1763812860000"}}', 60),
        (r'{"raw": "{\"retry_after\": 8}"}', 8),
        ('{"retry_after": null} try again in 3s', 3),
        ("usage limit reached|1763812860", 60),
    ],
)
def test_wait_in_the_body_is_parsed(wait_for, text, seconds):
    assert wait_for(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("resets at 14:00 (UTC)", at(2025, 11, 22, 14)),
        ("resets at 14:00", at(2025, 11, 22, 14)),
        ("resets at 14:00 (../../etc/passwd)", at(2025, 11, 22, 14)),
        ("resets at 11:59 UTC", at(2025, 11, 23, 11, 59)),
        ("You've hit your limit · resets 8pm (America/New_York)", at(2025, 11, 23, 1)),
        ("resets 4:30pm (Asia/Calcutta)", at(2025, 11, 23, 11)),
        ("resets 12am (Europe/Berlin)", at(2025, 11, 22, 23)),
        ("resets Dec 10 at 7am (America/Chicago)", at(2025, 12, 10, 13)),
        ("resets Jan 3, 9am (UTC)", at(2026, 1, 3, 9)),
        ("You will regain access on 2025-12-01 at 00:00 UTC.", at(2025, 12, 1)),
        ("Your limit will reset at 2025-11-23 12:00:00", at(2025, 11, 23, 12)),
        ("try again at 2025-11-23T12:00:00.500+02:00", at(2025, 11, 23, 10)),
        ("resets on 2025-12-24", at(2025, 12, 24, 0)),
        ("您的限额将在 2025-11-23 12:00:00 重置", at(2025, 11, 23, 4)),
    ],
)
def test_time_in_the_body_is_parsed(wait_for, now, text, moment):
    assert wait_for(text) == pytest.approx(moment - now)


@pytest.mark.parametrize(
    "text",
    [
        "try again later",
        "retry after 3 attempts",
        "resets at 25:99 (UTC)",
        "resets at 14:00 (Mars/Olympus)",
        "resets at 14:00 +99:99",
        "resets on 2025-13-45",
        "resets Feb 31 at 7am",
        "resets at 0000-00-00",
        "the year 2025-11-23",
    ],
)
def test_text_without_a_valid_time_is_not_a_wait(wait_for, text):
    assert wait_for(text) == 0


def test_reset_of_the_exhausted_limit_is_used(wait_for):
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "9s",
        "x-ratelimit-remaining-tokens": "500",
        "x-ratelimit-reset-tokens": "50s",
    }
    assert wait_for(**headers) == 9
    assert wait_for(**{**headers, "x-ratelimit-remaining-tokens": "0"}) == 50


def test_reset_of_an_allowed_limit_is_ignored(wait_for):
    headers = {"anthropic-ratelimit-unified-5h-status": "allowed", "anthropic-ratelimit-unified-5h-reset": "1763812899"}
    assert wait_for(**headers) == 0
    assert wait_for(**{**headers, "anthropic-ratelimit-unified-5h-status": "rejected"}) == 99


def test_retry_after_takes_precedence_over_limit_headers(wait_for):
    assert wait_for(retry_after="3", x_ratelimit_reset="90") == 3


def test_limit_headers_are_ignored_without_a_rate_limit(ask):
    answer = ask(500, headers={"x-ratelimit-reset": "90", "anthropic-ratelimit-tokens-reset": "90"})
    assert (type(answer), answer.delay) == (Retry, 0)
