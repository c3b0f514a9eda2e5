"""The built-in chat commands, each in a module of its name: ``/rewind`` is in ``rewind.py``."""

from __future__ import annotations

from .compact import COMPACT
from .cost import COST
from .diff import DIFF
from .export import EXPORT
from .fork import FORK
from .goal import GOAL
from .help import HELP
from .label import LABEL
from .later import LATER
from .mode import MODE
from .model import MODEL
from .models import MODELS
from .name import NAME
from .new import NEW
from .permissions import PERMISSIONS
from .quit import QUIT
from .reload import RELOAD
from .retry import RETRY
from .rewind import REWIND
from .session import SESSION
from .sessions import SESSIONS
from .skills import SKILLS
from .status import STATUS
from .thinking import THINKING
from .tools import TOOLS
from .tree import TREE
from .undo import UNDO

__all__ = ["OWN_CHAT_COMMANDS"]

OWN_CHAT_COMMANDS = (
    COMPACT,
    COST,
    DIFF,
    EXPORT,
    FORK,
    GOAL,
    HELP,
    LABEL,
    LATER,
    MODE,
    MODEL,
    MODELS,
    NAME,
    NEW,
    PERMISSIONS,
    QUIT,
    RELOAD,
    RETRY,
    REWIND,
    SESSION,
    SESSIONS,
    SKILLS,
    STATUS,
    THINKING,
    TOOLS,
    TREE,
    UNDO,
)
