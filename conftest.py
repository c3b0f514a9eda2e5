"""Fixtures for the tests of all packages."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest


@pytest.fixture
def count_calls() -> Callable[[Callable[[], object]], int]:
    """Return a function that calls another one and returns the number of Python functions that were called."""

    def count(function: Callable[[], object]) -> int:
        calls = 0

        def profile(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(profile)
        try:
            function()
        finally:
            sys.setprofile(None)
        return calls

    return count
