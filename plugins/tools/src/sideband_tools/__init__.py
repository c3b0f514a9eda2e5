"""Tools for agents: child agents, skill instructions, and complete results."""

from ._errors import DocumentUnreadable, SkillFileUnreadable, SkillUnknown, ToolsError
from ._version import __version__

__all__ = ["DocumentUnreadable", "SkillFileUnreadable", "SkillUnknown", "ToolsError", "__version__"]
