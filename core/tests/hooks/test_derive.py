"""Registries derived for agents: shared plugins, separate guards, and the agent's contexts."""

import gc
from traceback import walk_tb
from types import SimpleNamespace
from weakref import ref

import pytest
from sideband.hooks import Deny, HookInvalid, HookRegistry, Phase, SavePoint, ToolCall, Verdict, hookimpl

pytestmark = pytest.mark.anyio

CALL = ToolCall("c1", "echo", {})


class Counting:
    def __init__(self):
        self.seen = 0

    @hookimpl
    def tool_call(self, event, ctx):
        self.seen += 1
        return Deny(f"{self.seen} by {ctx}")


def registry(**options):
    hooks = HookRegistry(**options)
    hooks.register("counting", Counting(), phase=Phase.GUARD, context="host", make=Counting)
    return hooks


def agents(context):
    return f"agent of {context}"


async def test_each_agent_has_its_own_guard_instance():
    hooks = registry()
    one, two = hooks.derive(agents), hooks.derive(agents)
    await one.decide(CALL)
    assert (await one.decide(CALL)).reason.startswith("2 ")
    assert (await two.decide(CALL)).reason.startswith("1 ")
    assert (await hooks.decide(CALL)).reason.startswith("1 ")


async def test_implementations_receive_the_agents_context():
    assert (await registry().derive(agents).decide(CALL)).reason == "1 by agent of host"


def test_callbacks_of_a_plugin_receive_the_agents_context():
    assert registry().derive(agents).context_of("counting", CALL) == "agent of host"


async def test_hook_plugins_are_shared_between_agents():
    seen = []
    plugin = SimpleNamespace(save_point=hookimpl(lambda event: seen.append(event.entry)))
    hooks = registry()
    hooks.register("observer", plugin)
    await hooks.derive(agents).observe(SavePoint("s1", "e1"))
    await hooks.observe(SavePoint("s1", "e2"))
    assert seen == ["e1", "e2"]


@pytest.mark.parametrize("error", [RuntimeError("no memory"), SystemExit("no memory")])
async def test_guard_whose_factory_raises_denies(error):
    def broken():
        raise error

    hooks = HookRegistry(report=lambda report: None)
    hooks.register("broken", Counting(), phase=Phase.GUARD, make=broken)
    decision = await hooks.derive(agents).decide(CALL)
    assert decision.verdict is Verdict.DENY
    assert "no memory" in decision.reason


async def test_broken_plugin_is_broken_for_agents_too():
    hooks = registry(report=lambda report: None)
    derived = hooks.derive(agents)
    hooks.break_off("counting", "its lifespan ended")
    assert "its lifespan ended" in (await derived.decide(CALL)).reason
    later = hooks.derive(agents)
    assert "its lifespan ended" in (await later.decide(CALL)).reason


async def test_traceback_of_a_broken_plugin_does_not_grow_with_each_call():
    hooks = registry(report=lambda report: None)
    hooks.break_off("counting", "its lifespan ended")
    lengths = [len([*walk_tb((await hooks.decide(CALL)).error.__traceback__)]) for _ in range(3)]
    assert len(set(lengths)) == 1


async def test_unregistered_plugin_is_unregistered_for_agents_too():
    hooks = registry()
    derived = hooks.derive(agents)
    hooks.unregister("counting")
    assert (await derived.decide(CALL)).verdict is Verdict.ALLOW


async def test_guard_of_an_agent_is_not_changed_with_a_plugin_that_the_host_does_not_have():
    hooks = registry()
    derived = hooks.derive(agents)
    hooks.unregister("counting")
    derived.register("counting", Counting(), phase=Phase.GUARD)
    hooks.unregister("counting")
    hooks.break_off("counting", "its lifespan ended")
    assert (await derived.decide(CALL)).reason.startswith("1 by")


async def test_agents_use_the_hosts_order():
    hooks = HookRegistry(order={"tool_call": ["b", "a"]})
    for name in ("a", "b"):
        hooks.register(name, Counting())
    derived = hooks.derive(agents)
    assert [one.plugin for one in derived.order("tool_call")] == ["b", "a"]


async def test_guard_may_choose_its_functions_when_it_is_made():
    made = []

    class Choosing:
        def __init__(self):
            made.append(self)
            reason = f"number {len(made)}"
            self.tool_call = hookimpl(lambda event: Deny(reason))

    hooks = HookRegistry()
    hooks.register("choosing", Choosing(), phase=Phase.GUARD, make=Choosing)
    assert (await hooks.derive(agents).decide(CALL)).reason == "number 2"
    assert (await hooks.derive(agents).decide(CALL)).reason == "number 3"


async def test_guard_may_implement_further_hooks_when_it_is_made():
    seen = []

    class Growing(Counting):
        instances = 0

        def __init__(self):
            super().__init__()
            Growing.instances += 1
            if Growing.instances > 1:
                self.save_point = hookimpl(lambda event: seen.append(event.entry))

    hooks = HookRegistry()
    hooks.register("growing", Growing(), phase=Phase.GUARD, make=Growing)
    derived = hooks.derive(agents)
    await derived.observe(SavePoint("s1", "e1"))
    assert (seen, derived.has("save_point"), hooks.has("save_point")) == (["e1"], True, False)


async def test_changes_of_an_agents_plugins_are_not_those_of_the_host_and_of_other_agents():
    hooks = registry()
    one, two = hooks.derive(agents), hooks.derive(agents)
    one.register("own", Counting(), phase=Phase.GUARD)
    one.unregister("counting")
    hooks.register("later", Counting(), phase=Phase.GUARD)
    assert (one.plugins, two.plugins, hooks.plugins) == (("own",), ("counting",), ("counting", "later"))
    assert [one.has("tool_call"), two.has("tool_call")] == [True, True]
    assert [found.plugin for found in one.order("tool_call")] == ["own"]
    assert [found.plugin for found in hooks.order("tool_call")] == ["counting", "later"]


def test_plugin_that_the_host_registers_later_is_not_one_of_its_agents():
    hooks = HookRegistry()
    hooks.register("observer", SimpleNamespace(save_point=hookimpl(lambda event: None)))
    derived = hooks.derive(agents)
    hooks.register("later", Counting())
    assert (derived.plugins, derived.has("tool_call")) == (("observer",), False)


async def test_guard_whose_class_was_changed_is_checked_again():
    class Changing:
        @hookimpl
        def tool_call(self, event):
            return Deny("before")

    def tool_call(self, event, ctx):
        return Deny(f"after, {ctx}")

    hooks = HookRegistry()
    hooks.register("changing", Changing(), phase=Phase.GUARD, context="host", make=Changing)
    Changing.tool_call = hookimpl(tool_call)
    assert (await hooks.derive(agents).decide(CALL)).reason == "after, agent of host"
    Changing.tool_call = hookimpl(lambda event: Deny("no self"))
    with pytest.raises(HookInvalid):
        hooks.derive(agents)


def test_class_of_a_guard_that_only_one_agent_had_is_not_kept():
    class OfOneAgent(Counting):
        @hookimpl
        def save_point(self, event):
            super().tool_call(event, None)  # the function has a reference to its class

    kept = ref(OfOneAgent)
    hooks = registry()
    derived = hooks.derive(agents)
    derived.register("own", OfOneAgent(), phase=Phase.GUARD, make=OfOneAgent)
    del derived, OfOneAgent
    gc.collect()
    assert kept() is None


async def test_guard_whose_class_lost_a_function_is_checked_again():
    class Losing(Counting):
        @hookimpl
        def save_point(self, event): ...

    hooks = HookRegistry()
    hooks.register("losing", Losing(), phase=Phase.GUARD, make=Losing)
    del Losing.save_point
    hooks.unregister("losing")
    gc.collect()
    hooks.register("losing", Losing(), phase=Phase.GUARD)
    assert not hooks.has("save_point")
