"""Sources of tools are closed in order, before what they use, and within a time limit."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Level, Plugin
from sideband.host import _tool_sources
from sideband.ops import OpFamily, op

from .tool_desk import Source, listed, plugin, until

pytestmark = pytest.mark.anyio


async def test_sources_are_closed_in_reverse_order_before_their_plugins(hosting):
    closed = []

    class Noting(Source):
        @asynccontextmanager
        async def open(self, ctx):
            assert ctx.state == "alive"
            try:
                yield self
            finally:
                await ctx.dispatch("probe.note", {})
                closed.append(self.name)

    @asynccontextmanager
    async def lifespan(ctx):
        try:
            yield "alive"
        finally:
            closed.append("plugin")

    sources = [Noting(name=name) for name in ("one", "two", "three")]
    value = SimpleNamespace(sideband_tools=lambda: sources, lifespan=lifespan)
    async with hosting(Plugin("tool", "desk", value), probe()) as host:
        await listed(host)
    assert closed == ["three", "two", "one", "plugin"]


def probe():
    class Nothing(BaseModel):
        pass

    @op("probe.note", level=Level.SAFE)
    async def note(params: Nothing, ctx) -> str:
        return "noted"

    return Plugin("op", "probe", SimpleNamespace(sideband_ops=lambda: OpFamily("probe", ops=(note,))))


async def test_source_that_hangs_on_closing_is_cancelled_and_the_others_are_closed(hosting, monkeypatch, caplog):
    monkeypatch.setattr(_tool_sources, "CLOSE_SECONDS", 0.05)
    closed = []

    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            yield self
            closed.append(f"closing {self.name}")
            try:
                await anyio.sleep_forever()
            finally:
                closed.append(f"cancelled {self.name}")

    first = Source(name="first")
    async with hosting(plugin(first, Hanging())) as host:
        await listed(host)
    assert closed == ["closing tickets", "cancelled tickets"]
    assert first.seen["close"] == 1
    assert "source tickets: it was cancelled, because it did not close in time" in caplog.text


async def test_closing_many_hanging_sources_has_one_time_limit(hosting, monkeypatch):
    monkeypatch.setattr(_tool_sources, "CLOSE_SECONDS", 600)
    monkeypatch.setattr(_tool_sources, "CLOSE_ALL_SECONDS", 0.05)
    closed = []

    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            try:
                yield self
                await anyio.sleep_forever()
            finally:
                closed.append(self.name)

    names = [f"s{number}" for number in range(20)]
    with anyio.fail_after(60):
        async with hosting(plugin(*[Hanging(name=name) for name in names])) as host:
            await listed(host)
    assert closed == names[::-1]


@pytest.mark.parametrize("method", ["list", "changed"])
async def test_source_is_closed_while_it_is_listed_or_waits(hosting, method, caplog):
    source = Source()
    setattr(source, method, anyio.sleep_forever)
    with anyio.fail_after(60):
        async with hosting(plugin(source)) as host:
            await host.tools.view()
            await until(lambda: source.seen["open desk"])
    assert source.seen["close"] == 1
    assert "source tickets" not in caplog.text, "a source that is closed has not failed"


async def test_host_that_closes_while_a_source_opens_does_not_wait_for_it(hosting):
    reached = anyio.Event()

    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            reached.set()
            await anyio.sleep_forever()
            yield self

    with anyio.fail_after(60):
        async with hosting(plugin(Hanging(), Source(name="tickets_two"))) as host:
            await host.tools.view()
            await reached.wait()


async def test_sources_of_a_cancelled_host_are_closed_in_order(hosting):
    sources = [Source(name=name) for name in ("one", "two")]
    with anyio.CancelScope() as scope:
        async with hosting(plugin(*sources)) as host:
            await listed(host)
            scope.cancel()
            await anyio.sleep_forever()
    assert [one.seen["close"] for one in sources] == [1, 1]


async def test_sources_of_a_plugin_that_failed_are_stopped(hosting):
    fail = anyio.Event()

    async def wait_and_fail():
        await fail.wait()
        raise RuntimeError("bad luck")

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_fail)
            yield

    source = Source()
    value = SimpleNamespace(sideband_tools=lambda: [source], lifespan=lifespan)
    async with hosting(Plugin("tool", "desk", value)) as host:
        await listed(host)
        (record,) = host.plugins.why("desk")
        fail.set()
        await until(lambda: record.state.broken)
        await host.tools.view()
        await until(lambda: source.seen["close"])
