"""Events of the kind `observe`: they have happened, and implementations cannot change them."""

from ._runs import *
from ._sessions import *
from ._tools import *
from ._turns import *

__all__ = [
    "AgentEnd",
    "AgentError",
    "AgentStart",
    "Effect",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ModelSelect",
    "RetryEnd",
    "RetryStart",
    "SavePoint",
    "SessionCompact",
    "SessionShutdown",
    "SessionStart",
    "Settled",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
]
