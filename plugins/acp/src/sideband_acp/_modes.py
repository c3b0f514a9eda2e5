"""The approval modes as the modes of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp.schema import SessionMode, SessionModeState
from sideband.contexts import ApprovalMode

if TYPE_CHECKING:
    from sideband_agent import Agent

_MODES: dict[ApprovalMode, tuple[str, str]] = {
    "manual": ("Manual", "Ask before each change"),
    "assist": ("Assist", "Ask before changes; an answer can hold for the session"),
    "semi": ("Semi", "Ask only before restricted changes, such as commands"),
    "full": ("Full", "Ask about nothing that you have granted"),
    "plan": ("Plan", "Change nothing before you have approved a plan"),
}


def modes_of(agent: Agent) -> SessionModeState | None:
    """Return the modes of an agent, and the one that holds; ``None`` without a guard that has modes."""
    if agent.approval_mode is None:
        return None
    found = [SessionMode(id=mode, name=name, description=text) for mode, (name, text) in _MODES.items()]
    return SessionModeState(current_mode_id=agent.approval_mode, available_modes=found)
