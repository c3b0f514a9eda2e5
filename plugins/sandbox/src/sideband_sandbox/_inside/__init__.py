"""What runs in processes of its own, behind the walls or on the way there: the standard library only.

No module of the host imports one of these files, and none of them imports another: a process runs a file by its path,
with ``-I -S``, and loads a second one the same way. Two are the code of throw-away processes, which get a copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = [
    "LOCKDOWN",
    "PROGRAM_ATTEMPTS",
    "PROGRAM_KEEPER",
    "PROGRAM_ROOT",
    "WORKER_ATTEMPTS",
    "ZYGOTE",
    "Plan",
]

_FOLDER = Path(__file__).parent

LOCKDOWN = _FOLDER / "_lockdown.py"
ZYGOTE = _FOLDER / "_zygote.py"
WORKER_ATTEMPTS = _FOLDER / "_worker_attempts.py"
PROGRAM_KEEPER = _FOLDER / "_program_keeper.py"
PROGRAM_ROOT = _FOLDER / "_program_root.py"
PROGRAM_ATTEMPTS = _FOLDER / "_program_attempts.py"

# What the host has decided, as JSON data, for the lock-down or a command's keeper to carry out.
Plan = dict[str, Any]
