"""Registration of the tools `output`, `skill` and `subagent`. Each is a separate entry point."""

from ._output_tool import output
from ._skill_tool import skill
from ._subagent_tool import subagent

__all__ = ["output", "skill", "subagent"]
