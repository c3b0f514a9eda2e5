"""Events of the kind `observe`: they have happened, and implementations cannot change them."""

from ._children import *
from ._runs import *
from ._sessions import *
from ._tools import *
from ._turns import *

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "ApprovalModeSelect",
    "CompactionEnd",
    "CompactionStart",
    "Effect",
    "GoalUpdate",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ModelSelect",
    "QueueUpdate",
    "RetryEnd",
    "RetryStart",
    "RouteEnd",
    "SavePoint",
    "SessionCompact",
    "SessionShutdown",
    "SessionStart",
    "SessionTree",
    "Settled",
    "SubagentEnd",
    "SubagentStart",
    "ThinkingLevelSelect",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolProgress",
    "TurnEnd",
    "TurnStart",
    "UserBash",
]
