"""Events of the kind `observe`: they have happened, and implementations cannot change them."""

from ._approvals import *
from ._children import *
from ._runs import *
from ._sessions import *
from ._tools import *
from ._turns import *
from ._workers import *

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "ApprovalEnd",
    "ApprovalModeSelect",
    "ApprovalStart",
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
    "WorkerEnd",
    "WorkerStart",
]
