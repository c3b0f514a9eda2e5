"""The host, which opens and closes plugins, store, ledger, broker and workers in the right order."""

from ..calls import CallRequest, CallResult
from ._host import Host
from ._plugin_context import HostPluginContext
from ._tool_registry import ToolRegistry

__all__ = [
    "CallRequest",
    "CallResult",
    "Host",
    "HostPluginContext",
    "ToolRegistry",
]
