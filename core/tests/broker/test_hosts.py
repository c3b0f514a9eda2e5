"""Settings and plugins of a host, and effects that plugins dispatch themselves."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import attrs
import pytest
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import ConfigurationError, Host, Plugin, hookimpl
from sideband.ops import OpContext, OpDenied, OpFamily, Scope, op
from sideband.store import StoreSpec
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


class Nothing(BaseModel):
    text: str = ""


@attrs.frozen
class RoomScope(Scope, family="room"):
    text: str | None = None


async def test_cleanup_of_a_plugins_own_effect_runs(make_host, family):
    closed = []

    @op("room.open")
    async def open_(params: Nothing, ctx: OpContext) -> None:
        async def close():
            closed.append(1)

        ctx.on_call_end(close)

    @op("other.use")
    async def use(params: Nothing, ctx: OpContext) -> None:
        await ctx.state.dispatch("room.open", {})
        assert closed == [1]

    @asynccontextmanager
    async def lifespan(ctx):
        yield ctx

    other = SimpleNamespace(sideband_ops=lambda: OpFamily(name="other", ops=(use,)), lifespan=lifespan)
    async with make_host(family("room", open_), Plugin(kind="op", name="other", value=other)) as host:
        await host.op("other.use", {})


async def test_plugin_can_dispatch_with_a_narrower_grant(make_host, family, hook):
    @op("room.enter", requires="room", scope=lambda params: RoomScope(text=params.text))
    async def enter(params: Nothing, ctx: OpContext) -> str:
        return params.text

    refused = []

    @hookimpl
    async def effect(event, ctx):
        if event.origin.plugin is None:
            assert await ctx.dispatch("room.enter", {"text": "a"}, capabilities=["room:text=a"]) == "a"
            try:
                await ctx.dispatch("room.enter", {"text": "b"}, capabilities=["room:text=a"])
            except OpDenied as error:
                refused.append(error.code)

    async with make_host(family("room", enter, scope=RoomScope), hook("guest", effect)) as host:
        await host.op("room.enter", {"text": "c"})
    assert refused == ["op.denied"]


@pytest.mark.parametrize(
    ("names", "settings"),
    [(("one", "two"), {}), (("one", "sqlite"), {"plugins": {"one": {"a": 1}, "sqlite": {"a": 1}}})],
    ids=["neither has a table", "both have one"],
)
async def test_two_stores_of_which_none_is_chosen_are_a_configuration_error(tmp_path, names, settings):
    stores = [Plugin(kind="store", name=name, value=sideband_store_sqlite.plugin) for name in names]
    with pytest.raises(ConfigurationError, match=rf"`{names[0]}` .*, `{names[1]}` ") as caught:
        async with Host(home=tmp_path, autoload=False, plugins=stores, settings=settings):
            pass
    assert "[policy.deny]" in caught.value.hint


@pytest.mark.parametrize(("table", "chosen"), [({}, "sqlite"), ({"other": {"name": "b"}}, "other")])
async def test_store_with_a_table_is_used_and_without_one_the_embedded_one(tmp_path, table, chosen):
    opened = []

    class Config(BaseModel):
        name: str = "a"

    def registered(name):
        @asynccontextmanager
        async def open_store(folder):
            opened.append(name)
            async with open_sqlite(folder) as store:
                yield store

        return SimpleNamespace(sideband_stores=lambda: [StoreSpec(name, open_store)], Config=Config)

    stores = [Plugin("store", name, registered(name)) for name in ("other", "sqlite")]
    async with Host(home=tmp_path, autoload=False, plugins=stores, settings={"plugins": table}):
        assert opened == [chosen]


async def test_exception_of_a_hook_is_redacted_in_the_log(make_host, family, hook, caplog):
    @op("room.look")
    async def look(params: Nothing, ctx: OpContext) -> None: ...

    @hookimpl
    async def effect(event):
        raise RuntimeError(f"could not send {CANARY}")

    async with make_host(family("room", look), hook("watcher", effect)) as host:
        host.redactor.protect(CANARY, "canary")
        await host.op("room.look", {})
    assert "could not send [redacted:canary]" in caplog.text
    assert CANARY not in caplog.text


async def test_order_of_hooks_follows_the_settings(make_host, family, hook):
    asked = []

    def watcher(name):
        @hookimpl
        def op_call(event):
            asked.append(name)

        return hook(name, op_call)

    @op("room.look")
    async def look(params: Nothing, ctx: OpContext) -> None: ...

    settings = {"policy": {"order": {"op_call": ["zebra", "ant"]}}}
    plugins = [family("room", look), watcher("ant"), watcher("zebra")]
    async with make_host(*plugins, settings=settings) as host:
        await host.op("room.look", {})
    assert asked == ["zebra", "ant"]
