"""The hooks of one agent: those of the host, its own guards, and a listener."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sideband.approvals import Approver
from sideband.broker import SessionEnds
from sideband.hooks import HookRegistry, Phase
from sideband.plugins import PluginContext

from ._contexts import AgentControls, AgentPluginContext, host_context
from ._listening import Listener, Listening

if TYPE_CHECKING:
    from sideband import Host


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
    hooks.session_ends = SessionEnds()
    for name, guard in guards.items():
        own = AgentPluginContext(host.context_for(name), agent)
        hooks.register(name, guard(), phase=Phase.GUARD, context=own, make=guard)
    if listener is not None:
        hooks.register("on_event", Listening(listener), phase=Phase.OBSERVER)
    return hooks
