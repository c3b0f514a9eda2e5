import pytest
from sideband.messages import Usage
from sideband_model_client import token_count


@pytest.mark.parametrize("value", [None, -1, "3", True, 1.5, [], 10**15 + 1, 10**40])
def test_implausible_count_is_ignored(value):
    assert token_count(value) is None


@pytest.mark.parametrize("value", [0, 10**15])
def test_plausible_count_fits_into_usage(value):
    assert Usage(input=token_count(value)).input == value
