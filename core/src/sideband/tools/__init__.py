"""Tools, which models may call, and immutable views of tools, which can only be narrowed.

A tool is a plugin in the group ``sideband.v1.tool``: ``sideband_tools()`` returns a list of tools and of sources of
tools, or the entry point is a ``Tool`` itself. The host creates the tools of skills with the same interface.

Names are imported on first use, to keep start-up fast.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ..contexts import SkillUses, ToolContext, emit_tool_progress, emit_tool_progress_closed
    from ..ops import FromHost
    from ._declaration import tool
    from ._sources import OpenedSource, ToolSource, is_tool_source
    from ._tool import RESULT_LIMITS, SCHEMA_LIMIT, ResultLimits, Tool, ToolOutput, is_tool_name
    from ._views import ToolView

__all__ = [
    "RESULT_LIMITS",
    "SCHEMA_LIMIT",
    "FromHost",
    "OpenedSource",
    "ResultLimits",
    "SkillUses",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolSource",
    "ToolView",
    "emit_tool_progress",
    "emit_tool_progress_closed",
    "is_tool_name",
    "is_tool_source",
    "tool",
]

__getattr__, __dir__ = lazy(__name__, "..contexts", "..ops", "._tool", "._views", "._sources", "._declaration")
