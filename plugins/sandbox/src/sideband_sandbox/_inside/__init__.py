"""What runs in processes of its own, behind the walls or on the way there: the standard library only.

No module of the host imports one of these files, and none of them imports another: a process runs a file by its path,
with ``-I -S``, and loads a second one the same way. Two are the code of throw-away processes, which get a copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = [
    "COMMAND_ATTEMPTS",
    "COMMAND_KEEPER",
    "COMMAND_ROOT",
    "LOCKDOWN",
    "WORKER_ATTEMPTS",
    "ZYGOTE",
    "Plan",
]

_FOLDER = Path(__file__).parent

LOCKDOWN = _FOLDER / "_lockdown.py"
ZYGOTE = _FOLDER / "_zygote.py"
WORKER_ATTEMPTS = _FOLDER / "_worker_attempts.py"
COMMAND_KEEPER = _FOLDER / "_command_keeper.py"
COMMAND_ROOT = _FOLDER / "_command_root.py"
COMMAND_ATTEMPTS = _FOLDER / "_command_attempts.py"

# What the host has decided, as JSON data, for the lock-down or a command's keeper to carry out.
Plan = dict[str, Any]
