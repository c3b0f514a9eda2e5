"""Sources of tools that fail, hang or announce without end: they delay nothing and are reported."""

from contextlib import asynccontextmanager

import anyio
import pytest
from sideband.host import _tool_sources

from .tool_desk import Source, listed, make, plugin, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("answer", [None, "tickets", {"tickets": 1}, iter([make("tickets.x")]), 5])
async def test_list_that_returns_another_type_is_reported(hosting, answer):
    class Wrong(Source):
        async def list(self):
            return answer

    async with hosting(plugin(Wrong())) as host:
        assert (await listed(host)).names == ()
        assert "it could not be listed: TypeError: `list` must return a list" in host.tools.problems[0]


async def test_source_whose_list_raises_keeps_its_tools_and_is_listed_again(hosting, monkeypatch):
    recovered = anyio.Event()

    class Flaky(Source):
        async def list(self):
            if self.seen["list"] == 1 and not self.seen["failed"]:
                self.seen["failed"] += 1
                raise ConnectionError("the token \x1b[31mcorrect-horse-battery is wrong")
            if self.seen["failed"]:
                await recovered.wait()
            return await super().list()

    monkeypatch.setattr(_tool_sources, "FIRST_RETRY_SECONDS", 0.01)
    source = Flaky(make("tickets"))
    async with hosting(plugin(source)) as host:
        assert (await listed(host)).names == ("tickets",)
        host.redactor.protect("correct-horse-battery", "token")
        source.announce(make("tickets.more"))
        await until(lambda: host.tools.problems)
        (problem,) = host.tools.problems
        assert problem.startswith("source tickets: it could not be listed: ConnectionError: the token ")
        assert problem.endswith(r" \x1b[31m[redacted:token] is wrong")
        assert host.tools.current.view.names == ("tickets",)
        recovered.set()
        await until(lambda: host.tools.current.view.names == ("tickets.more",))
        assert host.tools.problems == ()


@pytest.mark.parametrize("raised", [RuntimeError("boom " * 100_000), SystemExit(3)], ids=["long", "exit"])
async def test_source_that_cannot_be_opened_is_reported_and_the_others_are_used(hosting, raised):
    class Broken(Source):
        def open(self, ctx):
            raise raised

    async with hosting(plugin(Broken(name="broken"), Source(make("tickets")))) as host:
        assert (await listed(host)).names == ("tickets",)
        assert host.tools.problems[0].startswith("source broken: its tools are unavailable: it failed: ")
        assert len(host.tools.problems[0]) <= 1_000
        assert [one.state for one in host.tools.sources] == ["failed", "open"]
    assert [one.state for one in host.tools.sources] == ["failed", "closed"]


async def test_source_that_ends_loses_its_tools(hosting):
    end = anyio.Event()

    class Ending(Source):
        @asynccontextmanager
        async def open(self, ctx):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.end, tasks)
                yield self

        async def end(self, tasks):
            await end.wait()
            tasks.cancel_scope.cancel()

    async with hosting(plugin(Ending(make("tickets")))) as host:
        assert (await listed(host)).names == ("tickets",)
        end.set()
        await until(lambda: host.tools.current.view.names == ())
        assert host.tools.problems == ("source tickets: its tools are unavailable: it ended",)


async def test_source_that_never_lists_delays_nothing_and_is_reported(hosting, monkeypatch):
    monkeypatch.setattr(_tool_sources, "LIST_SECONDS", 0.01)
    source = Source()
    source.list = anyio.sleep_forever
    async with hosting(plugin(source, make("desk"))) as host:
        assert (await host.tools.view()).names == ("desk",)
        await until(lambda: host.tools.problems)
        assert "`list` did not return within 0.01 s" in host.tools.problems[0]


async def test_source_that_never_opens_is_cancelled_and_reported(hosting, monkeypatch):
    monkeypatch.setattr(_tool_sources, "OPEN_SECONDS", 0.01)
    cancelled = []

    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            try:
                await anyio.sleep_forever()
                yield self
            finally:
                cancelled.append(self.name)

    async with hosting(plugin(Hanging(make("tickets")), make("desk"))) as host:
        assert (await host.tools.view()).names == ("desk",)
        await until(lambda: host.tools.problems)
        assert host.tools.problems == ("source tickets: its tools are unavailable: it did not open within 0.01 s",)
        assert cancelled == ["tickets"]


async def test_endless_announcements_are_one_listing_at_a_time_with_pauses(hosting, monkeypatch):
    class Loud(Source):
        async def changed(self):
            self.seen["changed"] += 1

    monkeypatch.setattr(_tool_sources, "PAUSE", 600)
    source = Loud(make("tickets"))
    async with hosting(plugin(source)) as host:
        assert (await listed(host)).names == ("tickets",)
        for _ in range(1_000):
            await anyio.lowlevel.checkpoint()
        assert source.seen["list"] == source.seen["changed"] == 1
    assert source.seen["close"] == 1


async def test_announcements_between_two_listings_are_one(hosting, monkeypatch):
    source = Source(make("tickets.x0"))
    monkeypatch.setattr(_tool_sources, "PAUSE", 0.05)
    async with hosting(plugin(source)) as host:
        await listed(host)
        for number in range(1_000):
            source.announce(make(f"tickets.x{number}"))
        await until(lambda: host.tools.current.view.names == ("tickets.x999",))
        assert source.seen["list"] <= 3


async def test_problems_of_a_source_are_logged_only_a_few_times(hosting, monkeypatch, caplog):
    class Loud(Source):
        async def list(self):
            self.seen["list"] += 1
            return [make(f"other.x{self.seen['list']}")]

        async def changed(self):
            pass

    monkeypatch.setattr(_tool_sources, "PAUSE", 0)
    source = Loud()
    async with hosting(plugin(source)) as host:
        await listed(host)
        await until(lambda: source.seen["list"] > 100)
    assert 0 < len([one for one in caplog.records if "other.x" in one.message]) <= _tool_sources.MAX_PROBLEMS
