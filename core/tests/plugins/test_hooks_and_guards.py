from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband.hooks import OpCall, Phase, hookimpl
from sideband.ops import Level, Origin
from sideband.plugins import Plugin, PluginHost, PluginInvalid, PluginPolicy, State

pytestmark = pytest.mark.anyio

MAX_CALLS = 1_680  # to start one plugin of hooks

GUARD = """
    from sideband.hooks import Deny, hookimpl

    class Wall:
        @hookimpl
        async def op_call(self, event, ctx):
            return Deny(f"{ctx.plugin} says no to {event.op}")

        @hookimpl
        def agent_start(self, event):
            pass
"""
HOOK = """
    from sideband.hooks import hookimpl

    @hookimpl
    def agent_start(event):
        return None
"""


async def test_hooks_and_guards_are_loaded_when_the_host_is_entered(site, home):
    module = site.module(GUARD)
    site.distribution("test-wall", {"sideband.v1.guard": {"wall": f"{module}:Wall"}})
    site.plugin("hook", "surf", HOOK)
    async with PluginHost(PluginPolicy(only=frozenset({"wall", "surf"})), home=home) as plugins:
        order = plugins.hooks.order("agent_start")
        assert [(one.plugin, one.phase) for one in order] == [("wall", Phase.GUARD), ("surf", Phase.NORMAL)]


async def test_guard_receives_its_context(site, home):
    site.plugin("guard", "wall", GUARD + "\n    def sideband_guards():\n        return [Wall]\n")
    async with PluginHost(PluginPolicy(only=frozenset({"wall"})), home=home) as plugins:
        event = OpCall("e1", "http.get", {}, Level.MONITORED, Origin(), ())
        decision = await plugins.hooks.decide(event)
    assert decision.reason == "wall says no to http.get"


async def test_policy_order_is_the_order_of_hooks(site, home):
    site.plugin("hook", "a", HOOK)
    site.plugin("hook", "b", HOOK)
    policy = PluginPolicy(order={"agent_start": ("b", "a")}, only=frozenset({"a", "b"}))
    async with PluginHost(policy, home=home) as plugins:
        assert [one.plugin for one in plugins.hooks.order("agent_start")] == ["b", "a"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (HOOK.replace("def agent_start", "def agent_star"), "agent_start"),
        (HOOK.replace("(event)", "(event, request)"), "request"),
        ("", "no function is marked"),
    ],
    ids=["unknown hook", "wrong parameter", "empty module"],
)
async def test_invalid_hook_implementations_fail_the_plugin(site, home, source, problem):
    site.plugin("hook", "surf", source)
    site.plugin("hook", "good", HOOK)
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginInvalid, match=problem):
            await plugins.load("hook", "surf")
        assert plugins.why("surf")[0].state is State.FAILED
        assert plugins.why("good")[0].state is State.ACTIVE


CONFIGURED = """
    from pydantic import BaseModel
    from sideband.hooks import hookimpl

    class Config(BaseModel):
        watches: bool

    class Watcher:
        @hookimpl
        def agent_start(self, event):
            pass

    def sideband_hooks(config):
        return Watcher() if config.watches else None
"""


@pytest.mark.parametrize("watches", [True, False])
async def test_configuration_decides_whether_a_plugin_has_hooks(site, home, watches):
    site.plugin("hook", "surf", CONFIGURED)
    policy = PluginPolicy(only=frozenset({"surf"}), config={"surf": {"watches": watches}})
    async with PluginHost(policy, home=home) as plugins:
        assert plugins.why("surf")[0].state is State.ACTIVE
        assert plugins.hooks.has("agent_start") == watches
        assert plugins.hooks.plugins == ("surf",)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("Watcher", "is the class `Watcher`; use an instance of it"),
        ("[]", "no function is marked"),
        ("1", "no function"),
    ],
)
async def test_what_has_no_hooks_is_rejected(site, home, returned, problem):
    site.plugin("hook", "surf", CONFIGURED.replace("Watcher() if config.watches else None", returned))
    policy = PluginPolicy(only=frozenset({"surf"}), config={"surf": {"watches": True}})
    async with PluginHost(policy, home=home) as plugins:
        assert problem in plugins.why("surf")[0].reason


async def test_exception_of_a_guards_constructor_is_reported(site, home):
    module = site.module("class Wall:\n    def __init__(self):\n        raise ValueError('boom')")
    site.distribution("test-wall", {"sideband.v1.guard": {"wall": f"{module}:Wall"}})
    async with PluginHost(home=home) as plugins:
        assert "`Wall()` raised ValueError: boom" in plugins.why("wall")[0].reason


async def test_plugin_with_invalid_hooks_exits_its_lifespan(site, home, tmp_path):
    steps = tmp_path / "steps"
    site.plugin(
        "hook",
        "surf",
        f"""
        from contextlib import asynccontextmanager
        from pathlib import Path

        @asynccontextmanager
        async def lifespan(ctx):
            Path({str(steps)!r}).write_text("entered")
            yield
            Path({str(steps)!r}).write_text("exited")
        """,
    )
    async with PluginHost(home=home) as plugins:
        assert plugins.why("surf")[0].state is State.FAILED
        assert steps.read_text() == "exited"


def test_start_of_a_host_takes_the_same_work_for_each_plugin_however_many_there_are(home, count_calls):
    class Config(BaseModel):
        limit: int = 3

    def calls(number):
        module = SimpleNamespace(Config=Config, agent_start=hookimpl(lambda event: None))

        async def start():
            inline = [Plugin("hook", f"surf{one}", SimpleNamespace(**vars(module))) for one in range(number)]
            async with PluginHost(home=home, inline=inline, autoload=False):
                pass

        return count_calls(lambda: anyio.run(start))

    calls(20)
    few, some, many = calls(20), calls(110), calls(200)
    assert many - some <= 1.05 * (some - few), "something is repeated for all plugins with each plugin"
    assert (many - few) / 180 <= MAX_CALLS, "look for what can be done once, or in the thread that imports the plugin"
