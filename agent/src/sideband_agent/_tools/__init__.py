"""The tool calls of a turn: decide about them, run them as effects, and answer them."""

from ._long_results import LongResults
from ._offered_skills import OfferedSkills
from ._replays import Replays, ToolApprover
from ._tool_calls import ToolCalls, TurnAnswers
from ._tool_context import ToolContexts
from ._tool_effects import ToolEffects
from ._unanswered_calls import settle_calls

__all__ = [
    "LongResults",
    "OfferedSkills",
    "Replays",
    "ToolApprover",
    "ToolCalls",
    "ToolContexts",
    "ToolEffects",
    "TurnAnswers",
    "settle_calls",
]
