"""The store of a plugin: its own part of the host's store, in all its contexts and in all hosts of a home."""

import subprocess
import sys
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace

import attrs
import pytest
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin, hookimpl
from sideband.ops import Credential, OpContext, OpFamily, Scope, op
from sideband.plugins import PluginError, PluginHost
from sideband.store import StoreSpec

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@pytest.fixture
def anyio_backend():
    return "asyncio"


def counter(name):
    """Return an op family that counts its calls in its store."""

    @op(f"{name}.count")
    async def count(params: Nothing, ctx: OpContext) -> int:
        return await ctx.store.put("calls", {})

    return Plugin("op", name, SimpleNamespace(sideband_ops=lambda: OpFamily(name=name, ops=(count,))))


async def test_store_of_an_op_is_that_of_its_plugin_and_survives_the_host(hosting):
    plugins = [counter("one"), counter("two")]
    async with hosting(*plugins) as host:
        assert [await host.op("one.count", {}), await host.op("one.count", {}), await host.op("two.count", {})] == [
            *(1, 2, 1)
        ]
    async with hosting(*plugins) as host:
        assert await host.op("one.count", {}) == 3
        assert [key for key in await host.store.keys() if key.startswith("plugin/")] == [
            *("plugin/one/calls", "plugin/two/calls")
        ]


async def test_store_of_a_resolver_of_credentials_is_that_of_its_plugin(hosting):
    class Resolver:
        async def resolve(self, handle, audience, ctx):
            await ctx.store.put(handle, {})
            return Credential(handle, "a secret value")

    @attrs.frozen
    class KeeperScope(Scope, family="secrets"):
        name: str | None = None
        mode: str | None = None

    @op("secrets.list")
    async def listed(params: Nothing, ctx: OpContext) -> None: ...

    @op("asking.use")
    async def use(params: Nothing, ctx: OpContext) -> None:
        await ctx.credential("token", "https://example.org")
        await ctx.store.put("used", {})

    families = [
        OpFamily(name="asking", ops=(use,)),
        OpFamily(name="secrets", ops=(listed,), scope=KeeperScope, credentials=Resolver()),
    ]
    plugins = [Plugin("op", one.name, SimpleNamespace(sideband_ops=lambda one=one: one)) for one in families]
    async with hosting(*plugins) as host:
        await host.op("asking.use", {})
        assert list(await host.store.keys("plugin/")) == ["plugin/asking/used", "plugin/secrets/token"]


async def test_plugins_of_several_kinds_with_one_name_share_its_store(hosting):
    async with hosting(counter("one")) as host:
        assert await host.op("one.count", {}) == 1
        assert await host.context_for("one").store.keys() == ["calls"]
        assert await host.context_for("two").store.keys() == []


async def test_store_is_available_in_the_lifespan_of_a_hook_and_in_the_hook(hosting):
    @asynccontextmanager
    async def lifespan(ctx):
        yield await ctx.store.put("starts", {})

    seen = []

    @hookimpl
    async def effect(event, ctx):
        seen.append((ctx.state, await ctx.store.keys()))

    watcher = Plugin("hook", "watcher", SimpleNamespace(lifespan=lifespan, effect=effect))
    for start in (1, 2):
        async with hosting(watcher, counter("one")) as host:
            await host.op("one.count", {})
        assert seen.pop() == (start, ["starts"])


async def test_store_is_closed_with_the_host(hosting):
    contexts = []
    problems = []

    @asynccontextmanager
    async def lifespan(ctx):
        contexts.append(ctx)
        kept = ctx.store
        await kept.put("a", {})
        yield
        try:
            await kept.put("b", {})
        except PluginError as error:
            problems.append(error.message)

    @hookimpl
    def effect(event): ...

    keeper = Plugin("hook", "keeper", SimpleNamespace(lifespan=lifespan, effect=effect))
    async with hosting(keeper) as host:
        kept = contexts[0].store
        assert await kept.keys() == ["a"]
        own = host.context_for("keeper").store
        assert await own.keys() == ["a"]
    assert problems == ["the plugin `keeper` cannot use the store, which is not open yet or closed"]
    for attempt in (kept.keys(), kept.put("c", {}), own.get("a"), kept.transaction().__aenter__(), kept.sync()):
        with pytest.raises(PluginError, match="cannot use the store, which is not open yet or closed"):
            await attempt
    with pytest.raises(PluginError):
        kept.unsynced()


async def test_store_plugin_cannot_use_the_store_before_it_has_opened_it(tmp_path):
    problems = []

    @asynccontextmanager
    async def lifespan(ctx):
        try:
            await ctx.store.keys()
        except PluginError as error:
            problems.append(error.message)
        yield

    value = SimpleNamespace(
        lifespan=lifespan,
        sideband_stores=lambda: [StoreSpec(name="own", open=sideband_store_sqlite.open_sqlite)],
    )
    async with Host(home=tmp_path, plugins=[Plugin("store", "own", value)], autoload=False):
        assert problems == ["the plugin `own` cannot use the store, which is not open yet or closed"]


async def test_plugin_host_without_a_store_reports_its_use(tmp_path):
    async with PluginHost(home=tmp_path, inline=[counter("one")], autoload=False) as plugins:
        context = (await plugins.load("op", "one")).context
        with pytest.raises(PluginError, match="the plugin `one` cannot use the store: its plugin host has no store"):
            _ = context.store


LIMITED = '''
import sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.errors import ReservationRefused
from sideband.ops import Credential, OpContext, OpFamily, Scope, op
from sideband.store import Reservations


class Nothing(BaseModel):
    pass


@op("gate.enter")
async def enter(params: Nothing, ctx: OpContext) -> bool:
    """Enter, unless 20 callers have done so within an hour."""
    try:
        await Reservations(ctx.store).take("visitors", of=20, seconds=3_600)
    except ReservationRefused:
        return False
    return True


def host(home):
    """Return a host with this op and a store."""
    gate = SimpleNamespace(sideband_ops=lambda: OpFamily(name="gate", ops=(enter,)))
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), Plugin("op", "gate", gate)]
    return Host(home=home, plugins=plugins, autoload=False)


async def main(home, calls):
    entered = []

    async def call():
        entered.append(await opened.op("gate.enter", {}))

    async with host(home) as opened:
        print("open", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for _ in range(calls):
                tasks.start_soon(call)
    print(sum(entered), len(entered), flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
'''


@pytest.mark.parametrize("hosts", [1, 4])
def test_of_100_parallel_calls_exactly_20_pass_a_reservation_of_20_on_any_number_of_hosts(hosts, tmp_path):
    arguments = [sys.executable, "-c", LIMITED, str(tmp_path / "home"), str(100 // hosts)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(hosts)
        ]
        assert [process.stdout.readline() for process in processes] == ["open\n"] * hosts
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        counts = [tuple(map(int, process.stdout.readline().split())) for process in processes]
    assert [sum(column) for column in zip(*counts, strict=True)] == [20, 100]
    assert [process.returncode for process in processes] == [0] * hosts
