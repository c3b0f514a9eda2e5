"""The agent: runs, turns, sessions, children and budgets. Nothing else in the core imports it."""

from ._agent import Agent
from ._agent_hooks import Listener
from ._budget import Allowance, Budget
from ._compaction._file_lists import with_file_lists, without_file_lists
from ._compaction._preparation import sliding_window
from ._errors import (
    AgentBusy,
    AgentClosed,
    AgentError,
    BudgetSpent,
    CallEnded,
    CostUnknown,
    DepthReached,
    InputEmpty,
    ModelFailed,
    ModelMissing,
    RunHalted,
    RunParked,
    StructureRefused,
    ToolsUnknown,
)
from ._run import Phase, RunResult, RunStatus
from ._tools._tool_calls import Approver

__all__ = [
    "Agent",
    "AgentBusy",
    "AgentClosed",
    "AgentError",
    "Allowance",
    "Approver",
    "Budget",
    "BudgetSpent",
    "CallEnded",
    "CostUnknown",
    "DepthReached",
    "InputEmpty",
    "Listener",
    "ModelFailed",
    "ModelMissing",
    "Phase",
    "RunHalted",
    "RunParked",
    "RunResult",
    "RunStatus",
    "StructureRefused",
    "ToolsUnknown",
    "sliding_window",
    "with_file_lists",
    "without_file_lists",
]
