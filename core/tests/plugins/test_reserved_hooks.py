"""Only guards decide: a plain hook plugin with `op_call` or `tool_call` is refused, and denies until it is mended."""

from types import SimpleNamespace

import pytest
from sideband.hooks import Deny, OpCall, ToolCall, hookimpl
from sideband.ops import Level, Origin
from sideband.plugins import Plugin, PluginHost, PluginInvalid, PluginPolicy, State, StrictPluginError

pytestmark = pytest.mark.anyio

OP_CALL = OpCall("e1", "http.get", {}, Level.MONITORED, Origin(), ())
TOOL_CALL = ToolCall("c1", "notes.list", {})


def silent(event):
    return None


def with_default(event, ctx=None):
    return None


class Instance:
    @hookimpl
    async def op_call(self, event): ...

    @hookimpl
    def settled(self, event): ...


class Static:
    @staticmethod
    @hookimpl
    def tool_call(event): ...


class Inherited(Instance):
    pass


def late():
    """Return a plugin that adds the hook while its lifespan is entered."""
    from contextlib import asynccontextmanager

    module = SimpleNamespace(settled=hookimpl(silent))

    @asynccontextmanager
    async def lifespan(ctx):
        module.op_call = hookimpl(silent)
        yield

    module.lifespan = lifespan
    return module


VALUES = {
    "op_call": SimpleNamespace(op_call=hookimpl(silent)),
    "tool_call": SimpleNamespace(tool_call=hookimpl(silent)),
    "both": SimpleNamespace(tool_call=hookimpl(silent), op_call=hookimpl(silent)),
    "with others": SimpleNamespace(op_call=hookimpl(silent), settled=hookimpl(silent)),
    "ordered": SimpleNamespace(op_call=hookimpl(before=["x"], after=["y"])(silent)),
    "context": SimpleNamespace(op_call=hookimpl(with_default)),
    "instance": Instance(),
    "static": Static(),
    "inherited": Inherited(),
    "late": late(),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_hook_plugin_that_decides_is_refused_with_the_remedy(home, value):
    async with PluginHost(home=home, inline=[Plugin("hook", "x", value)], autoload=False) as plugins:
        (record,) = plugins.why("x")
        assert record.state is State.FAILED
        assert "reserved for guards" in record.reason
        assert "`sideband.v1.guard`" in record.reason
        with pytest.raises(PluginInvalid):
            await plugins.load("hook", "x")
        assert not plugins.hooks.has("settled")


@pytest.mark.parametrize("event", [OP_CALL, TOOL_CALL], ids=["op_call", "tool_call"])
async def test_refused_hook_plugin_denies_instead_of_being_skipped(home, event):
    value = SimpleNamespace(op_call=hookimpl(silent))
    async with PluginHost(home=home, inline=[Plugin("hook", "x", value)], autoload=False) as plugins:
        decision = await plugins.hooks.decide(event)
    assert (decision.verdict.value, decision.plugin) == ("deny", "x")
    assert "`sideband.v1.guard`" in decision.reason
    assert '"hook.x" = "reason" to [policy.deny]' in decision.reason


async def test_denied_hook_plugin_does_not_decide(home):
    policy = PluginPolicy(deny={"hook.x": "not here"})
    value = SimpleNamespace(op_call=hookimpl(lambda event: Deny("no")))
    async with PluginHost(policy, home=home, inline=[Plugin("hook", "x", value)], autoload=False) as plugins:
        assert not plugins.hooks.has("op_call")


async def test_strict_host_refuses_to_start_with_a_hook_plugin_that_decides(home):
    plugin = Plugin("hook", "x", SimpleNamespace(tool_call=hookimpl(silent)))
    with pytest.raises(StrictPluginError, match="reserved for guards"):
        async with PluginHost(PluginPolicy(strict=True), home=home, inline=[plugin], autoload=False):
            pass


async def test_hook_plugin_may_implement_all_other_hooks(home):
    from sideband.hooks import HOOK_SPECS

    others = {name: hookimpl(silent) for name in HOOK_SPECS if name not in {"op_call", "tool_call"}}
    assert len(others) == len(HOOK_SPECS) - 2
    plugin = Plugin("hook", "x", SimpleNamespace(**others))
    async with PluginHost(home=home, inline=[plugin], autoload=False) as plugins:
        assert plugins.why("x")[0].state is State.ACTIVE


async def test_guard_may_decide(home):
    async with PluginHost(home=home, inline=[Plugin("guard", "x", Instance)], autoload=False) as plugins:
        assert plugins.why("x")[0].state is State.ACTIVE
        assert (await plugins.hooks.decide(OP_CALL)).allowed
