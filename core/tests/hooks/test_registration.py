import functools
import types
from types import SimpleNamespace

import attrs
import pluggy
import pytest
from sideband.hooks import (
    Deny,
    HookInvalid,
    HookNotFound,
    HookOrderCycle,
    HookRegistry,
    OpCall,
    Phase,
    ToolCall,
    hookimpl,
)
from sideband.ops import Level

CALL = ToolCall("c1", "notes.list", {})


def problems_of(implementation) -> tuple[str, ...]:
    hooks = HookRegistry()
    with pytest.raises(HookInvalid) as caught:
        hooks.register("broken", implementation)
    assert hooks.plugins == ()
    assert not any(hooks.has(hook) for hook in ("tool_call", "op_call", "tool_result"))
    assert "`broken`" in str(caught.value)
    return caught.value.problems


def test_unknown_hook_suggests_the_closest_name():
    @hookimpl
    def tool_cal(event): ...

    assert problems_of(SimpleNamespace(tool_cal=tool_cal)) == ("unknown hook `tool_cal` (did you mean `tool_call`?)",)


def test_unknown_parameter_suggests_the_closest_name():
    @hookimpl
    def tool_call(evnt, ctx): ...

    [problem] = problems_of(SimpleNamespace(tool_call=tool_call))
    assert problem == ("`tool_call` takes (evnt, ctx), but must take (event) or (event, ctx) (did you mean `event`?)")


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda ctx: None, lambda ctx, event: None, lambda event, ctx, more=1: None, lambda *event: None],
)
def test_other_signatures_are_rejected(function):
    if function.__code__.co_flags & 0x04:
        problems = problems_of(SimpleNamespace(tool_call=hookimpl(lambda *args: None)))
    else:
        problems = problems_of(SimpleNamespace(tool_call=hookimpl(function)))
    assert "but must take (event) or (event, ctx)" in problems[0]


def test_keyword_only_parameter_is_rejected():
    @hookimpl
    def tool_call(event, *, ctx): ...

    assert problems_of(SimpleNamespace(tool_call=tool_call)) == (
        "`tool_call` takes `ctx` as a keyword-only argument, but it is passed by position",
    )


def test_level_is_rejected_for_hooks_whose_events_have_no_level_to_decide_about():
    module = SimpleNamespace(
        effect=hookimpl(level=Level.CONTROLLED)(lambda event: None),
        op_call=hookimpl(level=Level.CONTROLLED)(lambda event: None),
        settled=hookimpl(level=Level.SAFE)(lambda event: None),
    )
    assert problems_of(module) == ("`effect` is called for events of all levels; remove `level` from its @hookimpl",)
    with pytest.raises(ValueError, match="'high' is not a valid Level"):
        hookimpl(level="high")


def test_annotation_with_the_event_of_another_hook_is_rejected():
    @hookimpl
    def tool_call(event: OpCall): ...

    @hookimpl
    def op_call(event: "sideband.hooks.ToolCall"): ...  # noqa: F821  string annotations are not evaluated

    assert problems_of(SimpleNamespace(tool_call=tool_call, op_call=op_call)) == (
        "`op_call` is annotated with ToolCall, but receives OpCall",
        "`tool_call` is annotated with OpCall, but receives ToolCall",
    )


def test_all_problems_are_reported_together():
    class Broken:
        @hookimpl
        def tool_call(self, call): ...

        @hookimpl
        def op_cal(self, event): ...

        @hookimpl
        def tool_result(self, event):
            yield

        @hookimpl
        def settled(self, event): ...

    problems = problems_of(Broken())
    assert len(problems) == 3
    assert {problem.split("`")[1] for problem in problems} == {"tool_call", "op_cal", "tool_result"}


def test_unmarked_function_with_the_name_of_a_hook_is_rejected():
    class Guard:
        def tool_call(self, event):
            return Deny("never")

    [problem] = problems_of(Guard())
    assert "`tool_call` has the name of a hook, but is not marked" in problem


def test_mark_hidden_by_staticmethod_is_rejected():
    class Guard:
        @hookimpl
        @staticmethod
        def tool_call(event): ...

    [problem] = problems_of(Guard())
    assert "is not marked" in problem


def test_imported_function_is_not_an_implementation():
    module = types.ModuleType("plugin_module")

    def settled(event): ...

    settled.__module__ = "plugin_module"
    settled = hookimpl(settled)

    def context(event): ...

    module.settled, module.context = settled, context
    hooks = HookRegistry()
    hooks.register("plugin", module)
    assert hooks.has("settled")
    assert not hooks.has("context")


def test_pluggy_marker_of_another_origin_is_rejected():
    @pluggy.HookimplMarker("sideband")(tryfirst=True)
    def tool_call(event): ...

    [problem] = problems_of(SimpleNamespace(tool_call=tool_call))
    assert "does not use sideband's decorator" in problem


def test_marked_object_must_be_a_function():
    @functools.lru_cache
    def tool_call(event): ...

    [problem] = problems_of(SimpleNamespace(tool_call=hookimpl(tool_call)))
    assert "`tool_call` must be a function" in problem


def test_class_is_rejected():
    class Guard:
        @hookimpl
        def tool_call(self, event): ...

    assert problems_of(Guard) == ("`Guard` is a class; register an instance of it",)


def test_plugin_without_implementations_is_rejected():
    assert problems_of(SimpleNamespace(helper=len)) == ("no function is marked with @hookimpl",)


def test_registration_does_not_run_properties():
    class Guard:
        @property
        def op_call(self):
            raise AssertionError("ran")

        @hookimpl
        def tool_call(self, event): ...

    HookRegistry().register("guard", Guard())


def test_duplicate_name_is_rejected():
    plugin = SimpleNamespace(settled=hookimpl(lambda event: None))
    hooks = HookRegistry()
    hooks.register("one", plugin)
    with pytest.raises(HookInvalid, match="already registered"):
        hooks.register("one", plugin)
    assert hooks.plugins == ("one",)


@pytest.mark.anyio
async def test_equal_objects_are_different_plugins():
    @attrs.frozen
    class Guard:
        @hookimpl
        def op_call(self, event): ...

        @hookimpl
        def tool_call(self, event):
            return None

    hooks = HookRegistry()
    hooks.register("one", Guard())
    hooks.register("two", Guard())
    assert [one.plugin for one in hooks.order("tool_call")] == ["one", "two"]
    assert (await hooks.decide(CALL)).allowed


@pytest.mark.anyio
async def test_modules_methods_staticmethods_and_classmethods_are_supported(reports):
    module = types.ModuleType("a_module")
    module.tool_call = hookimpl(lambda event: Deny("module"))

    class Guard:
        @hookimpl
        async def tool_call(self, event, ctx=None):
            return Deny(f"method {ctx}")

        @staticmethod
        @hookimpl
        def op_call(event, ctx): ...

        @classmethod
        @hookimpl
        async def settled(cls, event): ...

    for implementation, reason in ((module, "module"), (Guard(), "method the context")):
        hooks = HookRegistry(report=reports.append)
        hooks.register("plugin", implementation, context="the context")
        assert (await hooks.decide(CALL)).reason == reason
    assert hooks.has("op_call")
    assert hooks.has("settled")
    assert reports == []


@pytest.mark.anyio
async def test_context_factory_receives_the_event():
    seen = []

    @hookimpl
    def tool_call(event, ctx):
        seen.append(ctx)

    hooks = HookRegistry()
    hooks.register("plugin", SimpleNamespace(tool_call=tool_call), context=lambda event: ("context of", event.id))
    await hooks.decide(CALL)
    assert seen == [("context of", "c1")]


@pytest.mark.anyio
async def test_failing_context_factory_is_a_failure_of_the_guard(reports):
    def factory(event):
        raise RuntimeError("no context")

    hooks = HookRegistry(report=reports.append)
    hooks.register("plugin", SimpleNamespace(tool_call=hookimpl(lambda event, ctx: None)), context=factory)
    decision = await hooks.decide(CALL)
    assert not decision.allowed
    assert decision.plugin == "plugin"


@pytest.mark.anyio
async def test_unregistered_plugin_is_not_called():
    hooks = HookRegistry()
    hooks.register("guard", SimpleNamespace(tool_call=hookimpl(lambda event: Deny("no"))))
    hooks.unregister("guard")
    assert not hooks.has("tool_call")
    assert (await hooks.decide(CALL)).allowed
    hooks.register("guard", SimpleNamespace(tool_call=hookimpl(lambda event: Deny("again"))))
    assert (await hooks.decide(CALL)).reason == "again"


@pytest.mark.anyio
async def test_broken_guard_denies_without_being_called(reports):
    called = []
    hooks = HookRegistry(report=reports.append)
    hooks.register(
        "guard", SimpleNamespace(tool_call=hookimpl(lambda event, ctx: called.append(ctx))), phase=Phase.GUARD
    )
    hooks.break_off("guard", "its lifespan ended")
    for other in ("other", "another"):
        decision = await hooks.decide(CALL)
        assert (decision.verdict.value, decision.plugin) == ("deny", "guard")
        assert "plugin `guard` failed in `tool_call`: its lifespan ended" in decision.reason
        hooks.register(other, SimpleNamespace(tool_call=hookimpl(lambda event: None)))
    assert called == []
    assert [report.plugin for report in reports] == ["guard", "guard"]


@pytest.mark.anyio
async def test_broken_plugin_can_be_registered_again():
    plugin = SimpleNamespace(tool_call=hookimpl(lambda event: None))
    hooks = HookRegistry()
    hooks.break_off("guard", "not registered yet")
    hooks.register("guard", plugin)
    hooks.break_off("guard", "its lifespan ended")
    hooks.unregister("guard")
    assert not hooks.has("tool_call")
    hooks.register("guard", plugin)
    assert (await hooks.decide(CALL)).allowed


def test_unregistering_an_unknown_plugin_does_nothing():
    HookRegistry().unregister("unknown")


@pytest.mark.parametrize(
    "use",
    [
        lambda: HookRegistry().has("op_cal"),
        lambda: HookRegistry().order("op_cal"),
        lambda: HookRegistry(order={"op_cal": ("x",)}),
        lambda: HookRegistry(deadlines={"op_cal": 1}),
    ],
)
def test_unknown_hook_is_rejected_everywhere(use):
    with pytest.raises(HookNotFound, match="did you mean `op_call`"):
        use()


def test_cycle_registers_nothing_of_the_plugin():
    def plugin(**order):
        return SimpleNamespace(tool_call=hookimpl(**order)(lambda event: None), settled=hookimpl(lambda event: None))

    hooks = HookRegistry()
    hooks.register("a", plugin(after="b"))
    with pytest.raises(HookOrderCycle) as caught:
        hooks.register("b", plugin(after="a"))
    assert set(caught.value.cycle) == {"a", "b"}
    assert caught.value.plugin == "b"
    assert " before " in str(caught.value)
    assert hooks.plugins == ("a",)
    assert [one.plugin for one in hooks.order("settled")] == ["a"]
    hooks.register("b", plugin(before="a"))
    assert [one.plugin for one in hooks.order("tool_call")] == ["b", "a"]


@pytest.mark.parametrize("bad", [1, [1], ("a", ""), ""])
def test_constraints_must_be_plugin_names(bad):
    with pytest.raises(TypeError):
        hookimpl(before=bad)


def test_guard_is_registered_with_its_phase():
    hooks = HookRegistry()
    hooks.register("z", SimpleNamespace(tool_call=hookimpl(lambda event: None)), phase=Phase.GUARD)
    hooks.register("a", SimpleNamespace(tool_call=hookimpl(lambda event: None)))
    assert [(one.position, one.plugin, one.phase) for one in hooks.order("tool_call")] == [
        (1, "z", Phase.GUARD),
        (2, "a", Phase.NORMAL),
    ]


class Slotted:
    """A guard whose instances keep their functions in slots."""

    __slots__ = ("op_call", "tool_call")

    def __init__(self, **functions):
        for name, function in functions.items():
            setattr(self, name, hookimpl(function))


@pytest.mark.anyio
async def test_functions_in_slots_of_an_instance_are_its_own():
    hooks = HookRegistry()
    hooks.register("first", Slotted(tool_call=lambda event: None))
    hooks.register("second", Slotted(tool_call=lambda event: Deny("not this tool"), op_call=lambda event: None))
    assert hooks.has("op_call")
    assert (await hooks.decide(CALL)).reason == "not this tool"


def test_instance_with_a_function_in_a_slot_is_checked_although_its_class_is_known():
    class Guard(Slotted):
        __slots__ = ()

        @hookimpl
        def agent_start(self, event): ...

    hooks = HookRegistry()
    hooks.register("plain", Guard())
    assert not hooks.has("op_call")
    hooks.register("own", Guard(op_call=lambda event: None))
    assert hooks.has("op_call")


def test_data_in_a_slot_is_not_an_implementation():
    class Guard:
        __slots__ = ("input", "op_call")

        def __init__(self):
            self.input = "text"

        @hookimpl
        def tool_call(self, event): ...

    hooks = HookRegistry()
    hooks.register("guard", Guard())
    assert [hooks.has(hook) for hook in ("tool_call", "input", "op_call")] == [True, False, False]
