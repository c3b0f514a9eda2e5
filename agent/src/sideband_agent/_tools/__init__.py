"""The tool calls of a turn: decide about them, run them as effects, and answer them."""

from ._long_results import LongResults
from ._offered_skills import OfferedSkills
from ._replays import Replays
from ._tool_calls import ToolCalls, TurnAnswers
from ._tool_context import ToolContexts
from ._tool_effects import ToolEffects
from ._tool_questions import ToolQuestions
from ._unanswered_calls import settle_calls

__all__ = [
    "LongResults",
    "OfferedSkills",
    "Replays",
    "ToolCalls",
    "ToolContexts",
    "ToolEffects",
    "ToolQuestions",
    "TurnAnswers",
    "settle_calls",
]
