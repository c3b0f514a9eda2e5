"""What the command line says about agents."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from sideband_agent import Budget


@frozen
class SessionChoices:
    """What the command line says about the agents of all sessions.

    Attributes:
        model: the model; ``None`` for the session's, or the configured one.
        tools: the tools that they may call; ``None`` for all.
        mode: the approval mode that a session begins with; ``None`` for the configured one, or `assist`.
        budget: the limits of a session; ``None`` for the configured ones.
    """

    model: str | None = None
    tools: Sequence[str] | None = None
    mode: str | None = None
    budget: Budget | None = None
