from datetime import UTC, datetime, timedelta

import pytest
from sideband_cli.commands.secrets import _age


@pytest.mark.parametrize(
    ("ago", "told"),
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
def test_an_age_is_told_in_the_largest_unit_of_which_there_are_two(ago, told):
    assert _age((datetime.now(UTC) - ago).isoformat(timespec="seconds").replace("+00:00", "Z")) == told


@pytest.mark.parametrize("updated", [None, "", "yesterday", "2026-01-01T00:00:00"])
def test_an_age_that_can_not_be_told_is_unknown(updated):
    assert _age(updated) == "unknown"
