"""Questions to the user: what a tool asks, and what the user answers.

They are separate from approvals: an answer is data for the tool that asked, and allows nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from .contexts._tool import QuestionOption, UserAnswer, UserQuestion
from .ops import Origin

__all__ = ["Asker", "QuestionOption", "UserAnswer", "UserQuestion"]


Asker = Callable[[Sequence[UserQuestion], Origin], Awaitable[Sequence[UserAnswer]]]
"""Asks the user questions of one origin, and returns an answer to each. It is cancelled if the run is aborted."""
