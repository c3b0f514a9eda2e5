"""Fixtures for the tests of all packages."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

# A loaded machine makes an example slow, not wrong.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


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


@pytest.fixture
def count_instructions() -> Callable[[Callable[[], object]], int]:
    """Return a function that calls another one and returns the number of Python instructions that ran.

    Unlike ``count_calls``, it also counts the work of loops that call nothing.
    """

    def count(function: Callable[[], object]) -> int:
        instructions = 0

        def trace(frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
            nonlocal instructions
            frame.f_trace_opcodes = True
            instructions += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function()
        finally:
            sys.settrace(before)
        return instructions

    return count


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the names of the files that are synced with ``os.fdatasync`` during the test."""
    found: list[str] = []
    sync = os.fdatasync

    def counting(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", counting)
    return found


@pytest.fixture(scope="session")
def shared_store() -> SimpleNamespace:
    """Return the plugin of a store that hosts with different homes share, as on several machines."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "tests" / "shared_store.py")))
