"""Tools for agents: child agents, skill instructions, and complete results."""

from ._errors import SkillFileUnreadable, SkillUnknown, ToolsError
from ._version import __version__

__all__ = ["SkillFileUnreadable", "SkillUnknown", "ToolsError", "__version__"]
