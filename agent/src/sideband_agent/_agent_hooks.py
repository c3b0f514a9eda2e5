"""The hooks of one agent: those of the host, its own guards, and a listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import frozen
from sideband.approvals import Approver
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
    approver: Approver | None,
) -> HookRegistry:
    """Derive an agent's hooks from the host's, with contexts that know the agent.

    Args:
        host: the host.
        agent: the agent.
        guards: additional guards by name.
        listener: called with every observe event.
        approver: answers requests for approval of the agent; ``None`` for the approver of the host.
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
        hooks.register("on_event", _Listening(listener), phase=Phase.OBSERVER)
    return hooks


@frozen
class _Listening:
    """Implementations of all observe hooks that pass each event to a listener. Its exceptions are reported."""

    listener: Listener


def _hear(name: str) -> Callable[..., None]:
    def hear(self: _Listening, event: ObserveEvent) -> None:
        self.listener(event)

    hear.__name__ = name
    return hookimpl(hear)


for _name, _spec in HOOK_SPECS.items():
    if _spec.kind is Kind.OBSERVE:
        setattr(_Listening, _name, _hear(_name))
