"""What a host makes of its settings and plugins, and what plugins can do by themselves."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import attrs
import pytest
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import ConfigurationError, Host, Plugin, hookimpl
from sideband.ops import OpContext, OpDenied, OpFamily, Scope, op

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


class Nothing(BaseModel):
    text: str = ""


@attrs.frozen
class RoomScope(Scope, family="room"):
    text: str | None = None


async def test_what_an_effect_of_a_plugin_left_open_is_closed(make_host, family):
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


async def test_a_plugin_can_do_with_less_than_all_rights(make_host, family, hook):
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


async def test_a_host_needs_a_store(tmp_path):
    with pytest.raises(ConfigurationError, match="no store plugin") as caught:
        async with Host(home=tmp_path, autoload=False):
            pass
    assert "sideband-store-sqlite" in caught.value.hint


async def test_of_two_stores_none_is_chosen_silently(tmp_path):
    stores = [Plugin(kind="store", name=name, value=sideband_store_sqlite.plugin) for name in ("one", "sqlite")]
    with pytest.raises(ConfigurationError, match="one, sqlite") as caught:
        async with Host(home=tmp_path, autoload=False, plugins=stores):
            pass
    assert "[policy.deny]" in caught.value.hint


async def test_what_a_hook_raises_is_redacted_in_the_log(make_host, family, hook, caplog):
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


async def test_the_order_in_the_settings_is_the_order_of_the_hooks(make_host, family, hook):
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
