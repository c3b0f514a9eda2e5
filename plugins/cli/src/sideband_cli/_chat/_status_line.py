"""The line above the prompt of a chat: model, context usage, cost and approval mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._terminal._columns import fitted
from .._terminal._words import describe_tokens, describe_usage_cost, one_line

if TYPE_CHECKING:
    from sideband_agent import Agent


_MAX_TEXTS = 5
_MAX_LENGTH = 60


async def plugin_texts(agent: Agent, channel: str = "cli") -> tuple[str, ...]:
    """Return what plugins add to the status line, each on one line."""
    from sideband.hooks import StatusLine

    found = await agent.hooks.collect(StatusLine(channel))
    return tuple(fitted(one_line(one.value), _MAX_LENGTH) for one in found[:_MAX_TEXTS] if one.value.strip())


def status_line(agent: Agent, texts: Sequence[str] = ()) -> str:
    """Return the status line, such as ``[openai:gpt-5 · 12 % of 200k · $0.0123 · mode assist · 1 queued]``.

    Args:
        agent: the agent.
        texts: what plugins add to it.
    """
    queued = len(agent.queues.steering) + len(agent.queues.following)
    parts = [one_line(agent.model), describe_context(agent), describe_usage_cost(agent.usage)]
    parts += [f"mode {agent.approval_mode}"] if agent.approval_mode else []
    parts += [f"{queued} queued"] if queued else []
    return f"[{' · '.join([*parts, *texts])}]"


def describe_context(agent: Agent) -> str:
    """Describe how full the model's context is."""
    if not agent.context_window:
        return f"{describe_tokens(agent.context_tokens)} tokens"
    return f"{100 * agent.context_tokens / agent.context_window:.0f} % of {describe_tokens(agent.context_window)}"
