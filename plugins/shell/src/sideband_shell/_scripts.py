"""Finds the interpreters of a script: the kernel executes them, whatever name the script has."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ._errors import ShellDenied

# The kernel reads no more of a script, and follows no more interpreters that are scripts themselves.
_FIRST_BYTES = 256
_MOST_INTERPRETERS = 5
_LINE = re.compile(rb"#![ \t]*([^ \t\n\x00]+)")


def interpreters_of(binary: str, program: Path) -> tuple[str, ...]:
    """Return the paths of the interpreters of a script, as written and with symbolic links resolved.

    ``env`` and its like are not looked through, because they are listed as launchers themselves.

    Raises:
        ShellDenied: if the script names its interpreter by a relative path.
    """
    found: list[str] = []
    for _ in range(_MOST_INTERPRETERS):
        name = _interpreter_of(program)
        if name is None:
            break
        if not name.startswith("/"):
            raise ShellDenied(binary, f"it is a script of `{name}`, a relative path, which depends on the folder")
        program = Path(os.path.realpath(name))
        found += [name, str(program)]
    return tuple(found)


def _interpreter_of(program: Path) -> str | None:
    try:
        with program.open("rb") as stream:
            line = _LINE.match(stream.read(_FIRST_BYTES))
    except OSError:
        # An interpreter could not read the script either.
        return None
    return os.fsdecode(line[1]) if line else None
