"""The tool calls of a turn: decide about them, run them as effects, and answer them."""

from ._long_results import LongResults
from ._offered_skills import OfferedSkills
from ._planned_calls import PlannedCall
from ._replays import MOST_REPLAYS, Replays, listed
from ._tool_answer import TurnAnswers
from ._tool_calls import ToolCalls
from ._tool_context import ToolContexts
from ._tool_effects import PLUGIN_TOOL_SECONDS, ToolEffects
from ._tool_questions import ToolQuestions
from ._unanswered_calls import settle_calls

__all__ = [
    "MOST_REPLAYS",
    "PLUGIN_TOOL_SECONDS",
    "LongResults",
    "OfferedSkills",
    "PlannedCall",
    "Replays",
    "ToolCalls",
    "ToolContexts",
    "ToolEffects",
    "ToolQuestions",
    "TurnAnswers",
    "listed",
    "settle_calls",
]
