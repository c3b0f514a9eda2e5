"""Levels of thinking and goals: what is valid, and how a model sees a goal."""

from __future__ import annotations

from typing import Final, cast, get_args

from sideband.messages import UserMessage
from sideband.rendering import whole_characters
from sideband.settings import ThinkingLevel

THINKING_LEVELS: Final[tuple[str, ...]] = get_args(ThinkingLevel)
LONGEST_GOAL: Final = 4_000
"""The maximum number of characters of a goal. It is sent with each model call."""

_GOAL = (
    "The goal of this session, which holds until it is reached or dropped:\n\n{}\n\n"
    "This note repeats the goal. It is not a new request."
)


def known_level(level: str | None) -> ThinkingLevel | None:
    """Return the level if it exists; other programs have further ones."""
    return cast("ThinkingLevel", level) if level in THINKING_LEVELS else None


def goal_message(goal: str) -> UserMessage:
    """Return the message that shows the goal to the model, at the end of each request. It is never stored.

    There it survives compactions, and does not change what providers have cached.
    """
    return UserMessage(content=_GOAL.format(whole_characters(goal[:LONGEST_GOAL])), source="goal")
