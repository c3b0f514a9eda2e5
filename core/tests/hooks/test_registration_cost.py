"""The work of registration, in calls: it grows with the number of plugins, and not with its square."""

from types import SimpleNamespace

import pytest
from sideband.hooks import HookRegistry, hookimpl


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
    hooks.derive(lambda context: context)
    return lambda: hooks.derive(lambda context: context).has("turn_start")


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda number: lambda: with_plugins(number).has("turn_start"), id="registration"),
        pytest.param(derived, id="registry of an agent"),
        pytest.param(lambda number: lambda: with_plugins(number).order("turn_start"), id="order with reasons"),
    ],
)
def test_twice_as_many_plugins_on_one_hook_cost_twice_as_much(count_calls, work):
    assert count_calls(work(200)) < 2.2 * count_calls(work(100))


def test_registry_of_an_agent_shares_the_order_of_the_host(count_calls):
    assert count_calls(derived(200)) < 0.2 * count_calls(lambda: with_plugins(200).has("turn_start"))
