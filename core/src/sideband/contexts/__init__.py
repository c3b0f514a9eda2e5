"""The contexts that the host passes to op handlers, plugins, hooks and tools: protocols and their data."""

from ._agent import AgentContext, AgentSession, ChildResult
from ._lease import Lease, SessionEnds, TimedLease
from ._model import ModelContext
from ._op import APPROVAL_MODES, ApprovalMode, Credential, CredentialResolver, OpContext, Origin, RedactedText
from ._plugin import OwnContext, PluginContext, SecretSource, SkillUses
from ._progress import emit_tool_progress, emit_tool_progress_closed
from ._skills import HandlerContext, SkillContext, SkillTool, ToolRights, ToolState
from ._tool import ToolContext

__all__ = [
    "APPROVAL_MODES",
    "AgentContext",
    "AgentSession",
    "ApprovalMode",
    "ChildResult",
    "Credential",
    "CredentialResolver",
    "HandlerContext",
    "Lease",
    "ModelContext",
    "OpContext",
    "Origin",
    "OwnContext",
    "PluginContext",
    "RedactedText",
    "SecretSource",
    "SessionEnds",
    "SkillContext",
    "SkillTool",
    "SkillUses",
    "TimedLease",
    "ToolContext",
    "ToolRights",
    "ToolState",
    "emit_tool_progress",
    "emit_tool_progress_closed",
]
