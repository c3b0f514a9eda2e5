"""The tools `output`, `skill` and `subagent`: registration. Each is an entry point of its own."""

from ._output_tool import output
from ._skill_tool import skill
from ._subagent_tool import subagent

__all__ = ["output", "skill", "subagent"]
