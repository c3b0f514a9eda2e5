"""The hooks of one agent: those of the host, its own guards, and a listener."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sideband.hooks import HOOK_SPECS, HookRegistry, Kind, ObserveEvent, Phase, hookimpl
from sideband.plugins import PluginContext

from ._contexts import AgentControls, AgentPluginContext, host_context

if TYPE_CHECKING:
    from sideband import Host

Listener = Callable[[ObserveEvent], object]
"""Called with every observe event, including effects, after the plugins. Must not block."""


def agent_hooks(
    host: Host,
    agent: AgentControls,
    guards: Mapping[str, type],
    listener: Listener | None,
    approver: Callable[[str, Any], Awaitable[bool]] | None,
) -> HookRegistry:
    """Derive an agent's hooks from the host's, with contexts that know the agent.

    Args:
        host: the host.
        agent: the agent.
        guards: additional guards by name.
        listener: called with every observe event.
        approver: answers the questions of guards about effects of the agent; ``None`` for the approver of the host.
    """

    def context(inner: PluginContext | None) -> PluginContext | None:
        base = host_context(inner)
        return AgentPluginContext(base, agent) if base is not None else inner

    hooks = host.hooks.derive(context)
    hooks.approver = approver
    for name, guard in guards.items():
        own = AgentPluginContext(host.context_for(name), agent)
        hooks.register(name, guard(), phase=Phase.GUARD, context=own, make=guard)
    if listener is not None:
        hooks.register("on_event", _listening(listener), phase=Phase.OBSERVER)
    return hooks


def _listening(listener: Listener) -> SimpleNamespace:
    """Build hook implementations that pass every event to a listener. Its exceptions are reported and ignored."""

    def implementation(name: str) -> Any:
        def hear(event: ObserveEvent) -> None:
            listener(event)

        hear.__name__ = name
        return hookimpl(hear)

    names = [name for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE]
    return SimpleNamespace(**{name: implementation(name) for name in names})
