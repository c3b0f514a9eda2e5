"""The line above the prompt of a chat: model, context usage, cost and approval mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._terminal._words import describe_tokens, describe_usage_cost

if TYPE_CHECKING:
    from sideband_agent import Agent


def status_line(agent: Agent) -> str:
    """Return the status line, such as ``[openai:gpt-5 · 12 % of 200k · $0.0123 · mode assist · 1 queued]``."""
    queued = len(agent.queues.steering) + len(agent.queues.following)
    parts = [agent.model, describe_context(agent), describe_usage_cost(agent.usage)]
    parts += [f"mode {agent.approval_mode}"] if agent.approval_mode else []
    parts += [f"{queued} queued"] if queued else []
    return f"[{' · '.join(parts)}]"


def describe_context(agent: Agent) -> str:
    """Describe how full the model's context is."""
    if not agent.context_window:
        return f"{describe_tokens(agent.context_tokens)} tokens"
    return f"{100 * agent.context_tokens / agent.context_window:.0f} % of {describe_tokens(agent.context_window)}"
