"""A source of tools that fails in any way loses its own tools at most: it neither ends nor cancels its host."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace

import anyio
import pytest
import trio
from sideband import Plugin
from sideband.host import RunningSource
from sideband.tools import Tool
from trio.testing import MockClock

pytestmark = pytest.mark.anyio


async def run(arguments, ctx):
    return "done"


def make(name):
    return Tool(name, "", {"type": "object"}, dict, run)


class Source:
    """A source with one tool, which raises an exception in one of its methods."""

    scope = "host"

    def __init__(self, name, where="", raised=None):
        self.name, self.where, self.raised = name, where, raised
        self.seen = Counter()

    def fail(self, where):
        self.seen[where] += 1
        if self.where == where:
            raise self.raised

    def open(self, ctx):
        self.fail("open")
        return self.opened()

    @asynccontextmanager
    async def opened(self):
        self.fail("enter")
        try:
            yield self
        finally:
            self.fail("exit")

    async def list(self):
        self.fail("list")
        return [make(self.name)]

    async def changed(self):
        self.fail("changed")
        await anyio.sleep_forever()


class Mute(Exception):
    """An exception without a text."""

    def __str__(self):
        raise RuntimeError("no text")


EXCEPTIONS = [
    asyncio.CancelledError(),
    BaseException("boom"),
    BaseExceptionGroup("boom", [SystemExit(3)]),
    ExceptionGroup("boom", [Mute()]),
    SystemExit(3),
]


@pytest.mark.parametrize("where", ["open", "enter", "list", "changed", "exit"])
@pytest.mark.parametrize("raised", EXCEPTIONS, ids=repr)
async def test_source_that_raises_anything_ends_neither_its_host_nor_other_sources(hosting, where, raised):
    sources = [Source("bad", where, raised), Source("good")]
    plugin = Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: sources))
    is_done = False
    async with hosting(plugin) as host:
        with anyio.fail_after(30):
            await host.tools.wait_for_sources()
            while where == "changed" and not host.tools.problems:  # noqa: ASYNC110  there is no event for it
                await anyio.sleep(0.001)
        assert "good" in host.tools.current.view.names
        assert ("bad" in host.tools.current.view.names) == (where in ("changed", "exit"))
        assert (len(host.tools.problems) == 1) == (where != "exit")
        is_done = True
    assert is_done
    assert sources[1].seen["exit"] == 1


def running(source):
    return RunningSource(source, source.name, f"source {source.name}", None, lambda: None, str)


@pytest.mark.parametrize("where", ["enter", "list"])
@pytest.mark.parametrize("raised", [KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()])], ids=repr)
async def test_user_can_interrupt_a_source(where, raised):
    with pytest.raises(type(raised)):
        await running(Source("bad", where, raised)).run()


async def test_tools_of_a_source_are_removed_before_it_has_ended():
    source = running(Source("tickets"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run)
        with anyio.fail_after(30):
            await source.listed.wait()
        assert len(source.tools) == 1
        source.stop()
        assert source.tools == ()
        assert not source.ended.is_set()


@pytest.mark.parametrize("where", ["list", "changed"])
def test_pause_after_failures_doubles_up_to_five_minutes(where):
    times = []

    class Noting(Source):
        def fail(self, where):
            if where == self.where:
                times.append(trio.current_time())
            super().fail(where)

    async def main():
        source = running(Noting("bad", where, ConnectionError("gone")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(source.run)
            await trio.sleep(1_600)
            source.stop()
            await source.ended.wait()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    pauses = [round(after - before) for before, after in pairwise(times)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_pause_after_a_failure_is_short_again_once_a_change_was_announced():
    outcomes = iter(["fails", "fails", "fails", "announces", "fails"])
    times = []

    class Unsteady(Source):
        async def changed(self):
            times.append(trio.current_time())
            outcome = next(outcomes, "waits")
            if outcome == "fails":
                raise ConnectionError("gone")
            if outcome == "waits":
                await anyio.sleep_forever()

    async def main():
        source = running(Unsteady("unsteady"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(source.run)
            await trio.sleep(60)
            source.stop()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert [round(after - before, 3) for before, after in pairwise(times)] == [1, 2, 4, 0.2, 1]
