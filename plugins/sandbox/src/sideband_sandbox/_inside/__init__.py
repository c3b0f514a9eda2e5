"""Files that run in isolated processes, or isolate them. They use the standard library only.

The host imports none of these files, and none of them imports another: a process runs a file by its path with
``-I -S``, and loads others by path too. The two files of attempts are copied to where the probe processes run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = [
    "LOCKDOWN",
    "PROGRAM_ATTEMPTS",
    "PROGRAM_EXECUTION",
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
PROGRAM_EXECUTION = _FOLDER / "_program_execution.py"
PROGRAM_ROOT = _FOLDER / "_program_root.py"
PROGRAM_ATTEMPTS = _FOLDER / "_program_attempts.py"

# The host's decisions as JSON data, carried out by the lockdown or a program's keeper.
Plan = dict[str, Any]
