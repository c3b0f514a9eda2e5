"""The agent: runs, turns, sessions, children and budgets."""

from ._agent import Agent
from ._attachments import LARGEST_ATTACHMENT, attachment_of
from ._budget import Allowance, Budget
from ._compaction import sliding_window, with_file_lists, without_file_lists
from ._direct_calls import DirectCall, DirectCalls
from ._errors import (
    AgentBusy,
    AgentClosed,
    AgentFailed,
    ApprovalAwaited,
    ApprovalModeUnavailable,
    ApprovalModeUnknown,
    AskerMissing,
    AttachmentRefused,
    BudgetSpent,
    CallEnded,
    CostUnknown,
    DepthReached,
    GoalInvalid,
    InputEmpty,
    ModelFailed,
    ModelMissing,
    RunHalted,
    RunParked,
    RunUnfinished,
    StructureRefused,
    ThinkingUnknown,
    ToolRefused,
    ToolsUnknown,
)
from ._event_stream import EventReader, Lagged
from ._listening import Listener
from ._phase import AgentPhase
from ._run import RunResult, RunStatus
from ._user_programs import ProgramOutput

__all__ = [
    "LARGEST_ATTACHMENT",
    "Agent",
    "AgentBusy",
    "AgentClosed",
    "AgentFailed",
    "AgentPhase",
    "Allowance",
    "ApprovalAwaited",
    "ApprovalModeUnavailable",
    "ApprovalModeUnknown",
    "AskerMissing",
    "AttachmentRefused",
    "Budget",
    "BudgetSpent",
    "CallEnded",
    "CostUnknown",
    "DepthReached",
    "DirectCall",
    "DirectCalls",
    "EventReader",
    "GoalInvalid",
    "InputEmpty",
    "Lagged",
    "Listener",
    "ModelFailed",
    "ModelMissing",
    "ProgramOutput",
    "RunHalted",
    "RunParked",
    "RunResult",
    "RunStatus",
    "RunUnfinished",
    "StructureRefused",
    "ThinkingUnknown",
    "ToolRefused",
    "ToolsUnknown",
    "attachment_of",
    "sliding_window",
    "with_file_lists",
    "without_file_lists",
]
