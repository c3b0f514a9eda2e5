"""The agent: runs, turns, sessions, children and budgets."""

from ._agent import Agent
from ._agent_hooks import Listener
from ._attachments import LARGEST_ATTACHMENT, attachment_of
from ._budget import Allowance, Budget
from ._compaction import sliding_window, with_file_lists, without_file_lists
from ._errors import (
    AgentBusy,
    AgentClosed,
    AgentFailed,
    ApprovalAwaited,
    AttachmentRefused,
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
    ToolRefused,
    ToolsUnknown,
)
from ._phase import AgentPhase
from ._run import RunResult, RunStatus

__all__ = [
    "LARGEST_ATTACHMENT",
    "Agent",
    "AgentBusy",
    "AgentClosed",
    "AgentFailed",
    "AgentPhase",
    "Allowance",
    "ApprovalAwaited",
    "AttachmentRefused",
    "Budget",
    "BudgetSpent",
    "CallEnded",
    "CostUnknown",
    "DepthReached",
    "InputEmpty",
    "Listener",
    "ModelFailed",
    "ModelMissing",
    "RunHalted",
    "RunParked",
    "RunResult",
    "RunStatus",
    "StructureRefused",
    "ToolRefused",
    "ToolsUnknown",
    "attachment_of",
    "sliding_window",
    "with_file_lists",
    "without_file_lists",
]
