from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
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


def test_by_default_plugins_run_by_name():
    hooks = registry(normal("c"), normal("a"), normal("b"))
    assert names_of(hooks) == ["a", "b", "c"]
    assert reasons_of(hooks, "a") == ("phase normal", "by name")


def test_guards_run_first_and_observers_last():
    hooks = registry(("a", Phase.OBSERVER, (), ()), normal("b"), ("c", Phase.GUARD, (), ()))
    assert names_of(hooks) == ["c", "b", "a"]


def test_wishes_are_stronger_than_names():
    hooks = registry(normal("a", after="c"), normal("b"), normal("c"), normal("d", before=("b", "c")))
    assert names_of(hooks) == ["d", "b", "c", "a"]
    assert "after `c`: its own wish" in reasons_of(hooks, "a")
    assert "`a` wants to run after it" in reasons_of(hooks, "c")
    assert "`d` wants to run before it" in reasons_of(hooks, "b")


def test_the_manifest_is_stronger_than_names_and_weaker_than_wishes():
    hooks = registry(normal("a"), normal("b", after="a"), normal("c"), normal("d"), manifest=("d", "b", "c"))
    assert names_of(hooks) == ["d", "c", "a", "b"]
    assert "number 1 in the manifest" in reasons_of(hooks, "d")


def test_a_plugin_can_not_step_before_a_guard():
    hooks = registry(normal("sly", before="guard"), ("guard", Phase.GUARD, (), "sly"))
    assert names_of(hooks) == ["guard", "sly"]
    assert "before `guard`: refused, guards run before normal plugins" in reasons_of(hooks, "sly")
    assert "after `sly`: refused, guards run before normal plugins" in reasons_of(hooks, "guard")


def test_a_wish_that_the_phases_fulfil_is_said_to_be_granted():
    hooks = registry(normal("late", after="guard"), ("guard", Phase.GUARD, "late", ()))
    assert "after `guard`: granted, guards run before normal plugins" in reasons_of(hooks, "late")
    assert "before `late`: granted, guards run before normal plugins" in reasons_of(hooks, "guard")


def test_the_manifest_can_not_put_a_plugin_before_a_guard():
    hooks = registry(normal("sly"), ("guard", Phase.GUARD, (), ()), manifest=("sly", "guard"))
    assert names_of(hooks) == ["guard", "sly"]


def test_wishes_about_absent_plugins_are_ignored():
    hooks = registry(normal("a", after="absent"), normal("b", before="absent"))
    assert names_of(hooks) == ["a", "b"]
    assert "after `absent`: ignored, it does not implement this hook" in reasons_of(hooks, "a")


def test_a_plugin_that_wants_to_run_before_itself_is_a_cycle():
    with pytest.raises(HookOrderCycle):
        registry(normal("a", before="a"))


def test_a_cycle_is_printed_in_the_order_in_which_they_would_run():
    with pytest.raises(HookOrderCycle) as caught:
        registry(normal("a", before="b"), normal("b", before="c"), normal("c", before="a"))
    assert caught.value.cycle[0] == caught.value.cycle[-1]
    assert set(pairwise(caught.value.cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}


def test_a_late_plugin_takes_its_place():
    hooks = registry(normal("a"), normal("c"))
    assert names_of(hooks) == ["a", "c"]
    hooks.register("b", SimpleNamespace(settled=hookimpl(before="a")(lambda event: None)))
    assert names_of(hooks) == ["b", "a", "c"]
    hooks.unregister("a")
    assert names_of(hooks) == ["b", "c"]


@st.composite
def solvable(draw):
    """Plugins whose wishes fit a hidden order, the manifest, and two orders of registration."""
    hidden = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    plugins = []
    for index, name in enumerate(hidden):
        later, earlier = hidden[index + 1 :], hidden[:index]
        before = draw(st.lists(st.sampled_from([*later, "absent"]), unique=True, max_size=3))
        after = draw(st.lists(st.sampled_from([*earlier, "absent"]), unique=True, max_size=3))
        plugins.append((name, draw(st.sampled_from(Phase)), before, after))
    manifest = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return plugins, manifest, draw(st.permutations(plugins)), draw(st.permutations(plugins))


@given(solvable())
def test_every_order_that_exists_is_found_and_depends_on_nothing_but_what_is_registered(case):
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


@given(st.permutations(NAMES), st.integers(2, len(NAMES)), st.sampled_from(Phase))
def test_every_cycle_is_refused_whatever_the_order_of_registration(names, length, phase):
    ring = names[:length]
    plugins = [(name, phase, (), (ring[index - 1],)) for index, name in enumerate(ring)]
    with pytest.raises(HookOrderCycle):
        registry(*sorted(plugins, key=lambda plugin: names.index(plugin[0])))
