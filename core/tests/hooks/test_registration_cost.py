"""The work of registration, in calls: it grows with the number of plugins, and not with its square."""

from types import SimpleNamespace

import pytest
from sideband.hooks import HookRegistry, Phase, hookimpl


def observer():
    @hookimpl
    def turn_start(event): ...

    return SimpleNamespace(turn_start=turn_start)


def with_plugins(number):
    hooks = HookRegistry()
    for one in range(number):
        hooks.register(f"plugin-{one}", observer())
    return hooks


def derived(number):
    hooks = with_plugins(number)
    assert hooks.derive(lambda context: context).has("turn_start")
    return lambda: hooks.derive(lambda context: context).has("turn_start")


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda number: lambda: with_plugins(number).has("turn_start"), id="registration"),
        pytest.param(lambda number: lambda: with_plugins(number).order("turn_start"), id="order with reasons"),
    ],
)
def test_twice_as_many_plugins_on_one_hook_cost_twice_as_much(count_calls, work):
    assert count_calls(work(200)) < 2.2 * count_calls(work(100))


class Guard:
    @hookimpl
    def tool_call(self, event): ...


def with_guards(number):
    hooks = HookRegistry()
    for one in range(number):
        hooks.register(f"guard-{one}", Guard(), make=Guard)
    return hooks


def test_registry_of_an_agent_takes_the_same_work_for_any_number_of_plugins(count_calls):
    assert count_calls(derived(200)) == count_calls(derived(1))


def test_agent_with_a_guard_of_its_own_does_not_sort_the_plugins_of_the_host_again(count_calls):
    def agent(number):
        hooks = with_plugins(number)

        def open_agent():
            derived = hooks.derive(lambda context: context)
            derived.register("own", Guard(), phase=Phase.GUARD)
            assert derived.has("turn_start")

        open_agent()
        return open_agent

    assert count_calls(agent(200)) == count_calls(agent(2))


def test_guards_of_an_agent_are_not_checked_again(count_calls):
    hooks = with_guards(100)
    hooks.derive(lambda context: context)
    assert count_calls(lambda: hooks.derive(lambda context: context)) < 22 * 100, "check the class of a guard once"
