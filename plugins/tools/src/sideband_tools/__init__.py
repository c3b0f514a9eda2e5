"""Tools for agents: children, skills as instructions, and whole results."""

from ._errors import SkillFileUnreadable, SkillUnknown, ToolsError
from ._version import __version__

__all__ = ["SkillFileUnreadable", "SkillUnknown", "ToolsError", "__version__"]
