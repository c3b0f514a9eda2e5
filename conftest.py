"""Fixtures for the tests of all packages."""

import gc
import os
import runpy
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import anyio
import pytest
from hypothesis import settings
from sideband_sandbox import SystemSandbox
from sideband_sandbox._programs._launcher import ProgramLauncher

# Other conftest files cannot add plugins. Tests of the testing kit run pytest with it.
pytest_plugins = ["pytester"]

# These take longest. They start first, so that no process runs one alone at the end.
LONG_FILES = (
    "core/tests/workers/test_blocking.py",
    "plugins/testing/tests/conformance/test_checks_find_faults.py",
    "tests/docs/test_testing_page.py",
    "tests/docs/test_tutorials.py",
    "tests/end_to_end/test_command_line.py",
    "tests/end_to_end/test_run.py",
    "tests/security/crashes/test_crash_host.py",
    "tests/security/crashes/test_orphans.py",
    "tests/security/test_containers.py",
    "tests/test_distributions.py",
    "tests/test_language.py",
    "tests/test_packaging.py",
    "tests/test_templates.py",
    "tests/third_party/test_locked_tides.py",
    "tests/third_party/test_tides.py",
)

# A loaded machine makes an example slow, not wrong.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector from searching all tests again and again while they are collected, and while they run."""
    with _without_garbage_collection():
        found = yield
    gc.freeze()
    return found


def pytest_unconfigure() -> None:
    """Let the collector find all objects again: extension modules report what is left at the exit."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first. The others keep their order."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in LONG_FILES)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep the collector, whose callbacks are Python functions too, out of a count."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def count_calls() -> Callable[[Callable[[], object]], int]:
    """Return a function that calls another one and returns the number of Python functions that were called."""

    def count(function: Callable[[], object]) -> int:
        calls = 0

        def profile(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        with _without_garbage_collection():
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
        with _without_garbage_collection():
            sys.settrace(trace)
            try:
                function()
            finally:
                sys.settrace(before)
        return instructions

    return count


@pytest.fixture
def collect_garbage() -> Callable[[], int]:
    """Return ``gc.collect``, made fast by excluding the objects that exist before the test."""
    gc.freeze()
    return gc.collect


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


@pytest.fixture(scope="session")
def shared_stores() -> SimpleNamespace:
    """Return the checks of machines that share a store on a server, which each such plugin runs."""
    folder = Path(__file__).parent / "tests" / "shared_stores"
    parts = [runpy.run_path(str(folder / name)) for name in ("machines.py", "storm.py")]
    return SimpleNamespace(**(parts[0] | parts[1]))


@pytest.fixture(scope="session")
def _verified() -> tuple[Any, ProgramLauncher]:
    """Return the state of a sandbox that was verified once, because verification is slow."""

    async def verify() -> tuple[Any, Any]:
        sandbox = SystemSandbox()
        try:
            await sandbox.prove_programs()
            return sandbox._finding, sandbox._programs
        finally:
            await sandbox.close()

    return anyio.run(verify)


@pytest.fixture
def sandboxes(_verified: tuple[Any, ProgramLauncher]) -> SimpleNamespace:
    """Return a plugin with a sandbox that is already verified."""
    finding, launcher = _verified
    sandbox = SystemSandbox()
    sandbox._finding, sandbox._programs = finding, ProgramLauncher(launcher._platform, launcher._isolation)
    sandbox._programs._variant = launcher._variant
    return SimpleNamespace(sideband_sandboxes=lambda: [sandbox])
