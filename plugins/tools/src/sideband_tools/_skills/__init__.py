"""Tools for skills: read their instructions, run their scripts, write and delete their files."""

from ._delete_tool import skill_delete
from ._run_tool import skill_run
from ._skill_tool import skill
from ._write_tool import skill_write

__all__ = ["skill", "skill_delete", "skill_run", "skill_write"]
