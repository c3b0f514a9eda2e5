from datetime import UTC, datetime, timedelta

import pytest
from sideband_cli.commands.secrets import _age


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=119), "just now"),
        (timedelta(minutes=2, seconds=5), "2 minutes"),
        (timedelta(hours=1, minutes=59), "119 minutes"),
        (timedelta(hours=47), "47 hours"),
        (timedelta(days=400, hours=1), "400 days"),
        (timedelta(days=-1), "just now"),
    ],
)
def test_age_uses_the_largest_unit_with_a_value_of_at_least_two(ago, text):
    assert _age((datetime.now(UTC) - ago).isoformat(timespec="seconds").replace("+00:00", "Z")) == text


@pytest.mark.parametrize("updated", [None, "", "yesterday", "2026-01-01T00:00:00"])
def test_age_of_a_missing_or_invalid_time_is_unknown(updated):
    assert _age(updated) == "unknown"
