"""The host, which opens and closes plugins, store, ledger, broker and workers in the right order."""

from ..calls import CallRequest, CallResult
from ._host import Host
from ._plugin_context import HostPluginContext
from ._tool_registry import ProvidedSource, ToolRegistry
from ._tool_sources import RunningSource, close_sources, tool_fault

__all__ = [
    "CallRequest",
    "CallResult",
    "Host",
    "HostPluginContext",
    "ProvidedSource",
    "RunningSource",
    "ToolRegistry",
    "close_sources",
    "tool_fault",
]
