"""A reload that is cancelled, fails late or outlives its host leaves nothing behind."""

import gc
import sys
import threading
from textwrap import dedent
from types import ModuleType

import anyio
import pytest
from anyio.to_thread import current_default_thread_limiter, run_sync
from sideband import Host
from sideband.plugins import PluginHost, PluginReloadFailed

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

FAILING = """
    import sys

    @asynccontextmanager
    async def lifespan(ctx):
        began, going_on = sys.acme
        began.set()
        await going_on.wait()
        raise ValueError("no")
        yield
"""
PATTERNS = """
    import sys
    from sideband.hooks import hookimpl

    @hookimpl
    async def redactors(event):
        sys.acme[0].set()
        await sys.acme[1].wait()
        return []
"""
ENDING = """
    import anyio, sys
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(ctx):
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail)
                yield
        finally:
            sys.acme[1].set()

    async def fail():
        await sys.acme[0].wait()
        raise ValueError("no")
"""
ENTERING = """
    import sys

    @asynccontextmanager
    async def lifespan(ctx):
        began, going_on, exited = sys.acme
        began.set()
        with anyio.CancelScope(shield=True):
            await going_on.wait()
        yield
        exited.set()
"""
SLOW = """
    import sys
    sys.acme[0].set()
    sys.acme[1].wait()
"""


@pytest.fixture
async def host(home, package):
    package.write_ops(1)
    async with Host(home=home) as host:
        await host.plugins.load("op", "acme")
        yield host


class Threads:
    """The only thread that work may have, and those who wait for it."""

    def __init__(self, tasks):
        self.tasks, self.limiter = tasks, current_default_thread_limiter()
        self.limiter.total_tokens = 1

    async def waiting(self, number):
        await until(lambda: self.limiter.statistics().tasks_waiting == number)

    def keep(self):
        """Keep the thread, once it is free, until the second event is set."""
        began, going_on = threading.Event(), threading.Event()
        self.tasks.start_soon(run_sync, lambda: began.set() or going_on.wait(60))
        return began, going_on


async def until(condition):
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - threads set what it waits for
            await anyio.sleep(0.001)  # a loop that never waits would starve other threads


@both_backends
async def test_reload_cancelled_while_it_waits_for_a_thread_can_be_repeated(home, package):
    package.write_ops(1)
    async with PluginHost(home=home) as plugins:  # without a ledger and a store, which use threads at any time
        await plugins.load("op", "acme")
        package.write_ops(2)
        await cancel_while_it_waits_for_a_thread(plugins)
        (record,) = await plugins.reload("acme")
    assert record.version == "2.0"


async def cancel_while_it_waits_for_a_thread(plugins):
    """Cancel a reload before its import has a thread."""
    reload = anyio.CancelScope()

    async def reload_until_cancelled():
        with reload:
            await plugins.reload("acme")

    limiter = current_default_thread_limiter()
    tokens = limiter.total_tokens
    try:
        async with anyio.create_task_group() as tasks:
            threads = Threads(tasks)
            first_began, first = threads.keep()
            await until(first_began.is_set)
            tasks.start_soon(reload_until_cancelled)
            await threads.waiting(1)  # to read the metadata
            second_began, second = threads.keep()
            await threads.waiting(2)
            first.set()
            await until(second_began.is_set)
            await threads.waiting(1)  # to import the candidate
            reload.cancel()
            await threads.waiting(0)
            second.set()
    finally:
        limiter.total_tokens = tokens


async def test_neighbor_imported_while_a_candidate_fails_is_kept(host, package, monkeypatch):
    monkeypatch.setattr(sys, "acme", (anyio.Event(), anyio.Event()), raising=False)
    began, going_on = sys.acme
    package.write_ops(2, FAILING)

    async def fail():
        with pytest.raises(PluginReloadFailed, match="raised ValueError: no"):
            await host.reload("acme")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await began.wait()
        await host.op("acme.pair", {})
        late = sys.modules[f"{package.module}._late"]
        going_on.set()
    assert sys.modules.get(f"{package.module}._late") is late


@both_backends
async def test_reload_ends_with_a_reason_if_its_host_is_closed_during_the_import(home, package, monkeypatch):
    monkeypatch.setattr(sys, "acme", (threading.Event(), threading.Event()), raising=False)
    began, going_on = sys.acme
    package.write_ops(1)

    async def fail():
        with pytest.raises(PluginReloadFailed, match="was requested outside"):
            await host.reload("acme")

    async with anyio.create_task_group() as tasks:
        async with Host(home=home) as host:
            await host.op("acme.pair", {})
            running = sys.modules[f"{package.module}.plugin"]
            package.write_ops(2, SLOW)
            tasks.start_soon(fail)
            await until(began.is_set)
        going_on.set()
    assert sys.modules[f"{package.module}.plugin"] is running


@both_backends
async def test_reload_ends_with_a_reason_if_its_host_is_closed_before_the_swap(home, packages, monkeypatch):
    monkeypatch.setattr(sys, "acme", (anyio.Event(), anyio.Event()), raising=False)
    began, going_on = sys.acme
    package = packages(kinds=("hook",))
    package.write(1, {"plugin": ""})

    async def fail():
        with pytest.raises(PluginReloadFailed, match="was requested outside"):
            await host.reload("acme")

    async with anyio.create_task_group() as tasks:
        async with Host(home=home) as host:
            running = sys.modules[f"{package.module}.plugin"]
            package.write(2, {"plugin": PATTERNS})
            tasks.start_soon(fail)
            await began.wait()
        going_on.set()
    assert sys.modules[f"{package.module}.plugin"] is running


@both_backends
async def test_candidate_whose_lifespan_ends_before_the_swap_changes_nothing(home, packages, monkeypatch):
    monkeypatch.setattr(sys, "acme", (anyio.Event(), anyio.Event()), raising=False)
    package = packages(kinds=("hook",))
    package.write(1, {"plugin": ""})
    async with Host(home=home) as host:
        package.write(2, {"plugin": dedent(ENDING) + dedent(PATTERNS)})
        with pytest.raises(PluginReloadFailed, match="ValueError: no"):
            await host.reload("acme")
        assert [one.version for one in host.plugins.why("acme")] == ["1.0"]


@both_backends
async def test_lifespan_that_is_entered_after_its_reload_was_cancelled_is_exited(host, package, monkeypatch):
    monkeypatch.setattr(sys, "acme", (anyio.Event(), anyio.Event(), anyio.Event()), raising=False)
    began, going_on, exited = sys.acme
    await host.op("acme.pair", {})
    package.write_ops(2, ENTERING)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.reload, "acme")
        await began.wait()
        tasks.cancel_scope.cancel()
    going_on.set()
    with anyio.fail_after(10):
        await exited.wait()
    assert await host.op("acme.pair", {}) == [1, 1, 1, 1, 1]


async def test_hundred_failed_reloads_leave_nothing_behind(host, package):
    await host.op("acme.pair", {})
    threads, shared = threading.active_count(), len(host.plugins._loader._shared)
    names = {name for name in sys.modules if name.startswith(package.module)}
    failing = "@asynccontextmanager\nasync def lifespan(ctx):\n    raise ValueError('no')\n    yield"
    for number in range(2, 102):
        package.write_modules(number, {"plugin": "{ops}\n" + (failing if number % 2 else "raise ValueError")})
        with pytest.raises(PluginReloadFailed):
            await host.reload("acme")
    gc.collect()
    alive = [one for one in gc.get_objects() if isinstance(one, ModuleType) and one.__name__.startswith(package.module)]
    assert {name for name in sys.modules if name.startswith(package.module)} == names
    assert len(alive) < 2 * len(names)  # a thread keeps what it did last
    assert len(host.plugins.why("acme")[0].trail) <= 1 + 20
    assert threading.active_count() < threads + 10  # anyio keeps idle threads
    assert len(host.plugins._loader._shared) == shared
