from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.hooks import HookOrderCycle, HookRegistry, Phase, hookimpl

NAMES = ["a", "b", "c", "d", "e", "f", "g"]


def registry(*plugins, manifest=()):
    """Each plugin is (name, phase, before, after)."""
    hooks = HookRegistry(order={"settled": manifest})
    for name, phase, before, after in plugins:
        function = hookimpl(before=before, after=after)(lambda event: None)
        hooks.register(name, SimpleNamespace(settled=function), phase=phase)
    return hooks


def names_of(hooks):
    return [one.plugin for one in hooks.order("settled")]


def normal(name, before=(), after=()):
    return name, Phase.NORMAL, before, after


def reasons_of(hooks, plugin):
    return next(one.reasons for one in hooks.order("settled") if one.plugin == plugin)


def test_plugins_run_by_name_by_default():
    hooks = registry(normal("c"), normal("a"), normal("b"))
    assert names_of(hooks) == ["a", "b", "c"]
    assert reasons_of(hooks, "a") == ("phase normal", "by name")


def test_guards_run_first_and_observers_last():
    hooks = registry(("a", Phase.OBSERVER, (), ()), normal("b"), ("c", Phase.GUARD, (), ()))
    assert names_of(hooks) == ["c", "b", "a"]


def test_constraints_take_precedence_over_names():
    hooks = registry(normal("a", after="c"), normal("b"), normal("c"), normal("d", before=("b", "c")))
    assert names_of(hooks) == ["d", "b", "c", "a"]
    assert "after `c`: own constraint" in reasons_of(hooks, "a")
    assert "`a` declares after=`c`" in reasons_of(hooks, "c")
    assert "`d` declares before=`b`" in reasons_of(hooks, "b")


def test_manifest_takes_precedence_over_names_but_not_over_constraints():
    hooks = registry(normal("a"), normal("b", after="a"), normal("c"), normal("d"), manifest=("d", "b", "c"))
    assert names_of(hooks) == ["d", "c", "a", "b"]
    assert "number 1 in the manifest" in reasons_of(hooks, "d")


def test_plugin_cannot_run_before_a_guard():
    hooks = registry(normal("sly", before="guard"), ("guard", Phase.GUARD, (), "sly"))
    assert names_of(hooks) == ["guard", "sly"]
    assert "before `guard`: ignored, guards run before normal plugins" in reasons_of(hooks, "sly")
    assert "after `sly`: ignored, guards run before normal plugins" in reasons_of(hooks, "guard")


def test_constraint_satisfied_by_phases_is_reported():
    hooks = registry(normal("late", after="guard"), ("guard", Phase.GUARD, "late", ()))
    assert "after `guard`: satisfied, guards run before normal plugins" in reasons_of(hooks, "late")
    assert "before `late`: satisfied, guards run before normal plugins" in reasons_of(hooks, "guard")


def test_manifest_cannot_put_a_plugin_before_a_guard():
    hooks = registry(normal("sly"), ("guard", Phase.GUARD, (), ()), manifest=("sly", "guard"))
    assert names_of(hooks) == ["guard", "sly"]


def test_constraints_on_missing_plugins_are_ignored():
    hooks = registry(normal("a", after="missing"), normal("b", before="missing"))
    assert names_of(hooks) == ["a", "b"]
    assert "after `missing`: ignored, it does not implement this hook" in reasons_of(hooks, "a")


def test_plugin_before_itself_is_a_cycle():
    with pytest.raises(HookOrderCycle):
        registry(normal("a", before="a"))


@pytest.mark.parametrize("hooks_of", [lambda hooks: hooks, lambda hooks: hooks.derive(lambda context: context)])
def test_plugin_that_completes_the_cycle_of_another_is_rejected(hooks_of):
    hooks = hooks_of(registry(normal("a", before="b", after="b")))
    with pytest.raises(HookOrderCycle) as caught:
        hooks.register("b", SimpleNamespace(settled=hookimpl(lambda event: None)))
    assert caught.value.plugin == "b"
    assert names_of(hooks) == ["a"]


def test_cycle_is_listed_in_execution_order():
    with pytest.raises(HookOrderCycle) as caught:
        registry(normal("a", before="b"), normal("b", before="c"), normal("c", before="a"))
    assert caught.value.cycle[0] == caught.value.cycle[-1]
    assert set(pairwise(caught.value.cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}


def test_plugin_registered_later_is_sorted_in():
    hooks = registry(normal("a"), normal("c"))
    assert names_of(hooks) == ["a", "c"]
    hooks.register("b", SimpleNamespace(settled=hookimpl(before="a")(lambda event: None)))
    assert names_of(hooks) == ["b", "a", "c"]
    hooks.unregister("a")
    assert names_of(hooks) == ["b", "c"]


@st.composite
def solvable(draw):
    """Draw plugins whose constraints match a hidden order, a manifest, and two orders of registration."""
    hidden = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    plugins = []
    for index, name in enumerate(hidden):
        later, earlier = hidden[index + 1 :], hidden[:index]
        before = draw(st.lists(st.sampled_from([*later, "missing"]), unique=True, max_size=3))
        after = draw(st.lists(st.sampled_from([*earlier, "missing"]), unique=True, max_size=3))
        plugins.append((name, draw(st.sampled_from(Phase)), before, after))
    manifest = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return plugins, manifest, draw(st.permutations(plugins)), draw(st.permutations(plugins))


@settings(max_examples=50, deadline=None)
@given(solvable())
def test_order_is_valid_and_independent_of_registration_order(case):
    plugins, manifest, one_way, other_way = case
    order = names_of(registry(*one_way, manifest=manifest))
    assert order == names_of(registry(*other_way, manifest=manifest))
    assert sorted(order) == sorted(name for name, *_ in plugins)

    phases = {name: phase for name, phase, _, _ in plugins}
    assert [phases[name] for name in order] == sorted(phases[name] for name in order)
    for name, phase, before, after in plugins:
        for first, second in [(name, other) for other in before] + [(other, name) for other in after]:
            if phases.get(first) is phase and phases.get(second) is phase:
                assert order.index(first) < order.index(second)


@settings(max_examples=30, deadline=None)
@given(st.permutations(NAMES), st.integers(2, len(NAMES)), st.sampled_from(Phase))
def test_every_cycle_is_rejected(names, length, phase):
    ring = names[:length]
    plugins = [(name, phase, (), (ring[index - 1],)) for index, name in enumerate(ring)]
    with pytest.raises(HookOrderCycle):
        registry(*sorted(plugins, key=lambda plugin: names.index(plugin[0])))
