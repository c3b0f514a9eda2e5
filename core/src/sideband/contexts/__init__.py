"""The contexts that the host passes to op handlers, plugins, hooks and tools: protocols and their data."""

from ._agent import AgentContext, AgentSession, ChildResult
from ._lease import Lease, TimedLease
from ._model import ModelContext
from ._op import Credential, CredentialResolver, OpContext, Origin
from ._plugin import OwnContext, PluginContext, SecretSource
from ._progress import emit_tool_progress, emit_tool_progress_closed
from ._tool import ToolContext

__all__ = [
    "AgentContext",
    "AgentSession",
    "ChildResult",
    "Credential",
    "CredentialResolver",
    "Lease",
    "ModelContext",
    "OpContext",
    "Origin",
    "OwnContext",
    "PluginContext",
    "SecretSource",
    "TimedLease",
    "ToolContext",
    "emit_tool_progress",
    "emit_tool_progress_closed",
]
