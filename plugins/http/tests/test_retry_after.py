from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http._exchange._retry import retry_after

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("", 0),
        ("-5", 0),
        ("soon", 0),
        ("Thu, 01 Jan 2026 12:00:30 +99999999999999999", 0),
        ("Thu, 99999999999999999999 Jan 2026 12:00:30 GMT", 0),
    ],
)
def test_retry_after_is_parsed(value, seconds):
    assert retry_after(value, now=NOW) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_gives_a_non_negative_delay(value):
    assert retry_after(value, now=NOW) >= 0
