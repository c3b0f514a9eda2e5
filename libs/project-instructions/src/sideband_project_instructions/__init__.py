"""The instruction files of a project, such as AGENTS.md, and the user's answers whether agents follow them."""

from ._answers import Answers, Decision
from ._confined import MAX_SIZE, FileContent, open_resolved, read_file
from ._files import InstructionFile, find_instructions
from ._instructions import Instructions, known_instructions
from ._question import question_lines
from ._text import count_invisible, visible
from ._version import __version__

__all__ = [
    "MAX_SIZE",
    "Answers",
    "Decision",
    "FileContent",
    "InstructionFile",
    "Instructions",
    "__version__",
    "count_invisible",
    "find_instructions",
    "known_instructions",
    "open_resolved",
    "question_lines",
    "read_file",
    "visible",
]
