"""The tools `output`, `skill` and `subagent`: registration. Each is an entry point of its own."""

from ._output import output
from ._skill import skill
from ._subagent import subagent

__all__ = ["output", "skill", "subagent"]
