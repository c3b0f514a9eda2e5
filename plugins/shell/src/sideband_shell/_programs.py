"""Finds the executable file of a program."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from ._errors import ShellDenied, ShellMissing, ShellNotExecutable
from ._known_programs import runs_code, runs_others
from ._scripts import interpreters_of

_NAME = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.+@\[-]{0,127}\Z")
# The maximum path length of the system. Resolving a path takes quadratic time.
_LONGEST = 4_096
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@frozen
class ShellProgram:
    """An executable file.

    Args:
        path: the path to execute.
        real: the same path with symbolic links resolved.
        interpreters: the paths of its interpreters if it is a script, because the kernel executes them with it.
    """

    path: Path
    real: Path
    interpreters: tuple[str, ...] = ()


def check_binary(text: str) -> str:
    """Return the program in the form that capabilities use, with symbolic links resolved if it is a path.

    Raises:
        ValueError: if it is not a valid program name.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a path must have at most {_LONGEST:,} characters, got {len(text):,}")
    if "\x00" in text:
        raise ValueError("a path must not contain NUL")
    if text.startswith("/"):
        return os.path.realpath(text)
    if not _NAME.match(text):
        raise ValueError("expected a name such as `git`, or an absolute path; pass arguments in `args`")
    return text


def find_program(binary: str, path: Iterable[str], home: Path) -> ShellProgram:
    """Find the executable file of a program.

    Args:
        binary: a name, or an absolute path.
        path: the folders in which a name is looked up.
        home: the host's folder, from which no program is run.

    Raises:
        ShellMissing: if the program does not exist.
        ShellDenied: if a skill or another user could have written it, or if its interpreter is a relative path.
        ShellNotExecutable: if it is not an executable file.
    """
    if binary.startswith("/"):
        program = ShellProgram(Path(binary), Path(os.path.realpath(binary)))
        if not program.real.exists():
            raise ShellMissing(binary, "only this path")
        if program.real != program.path:
            raise ShellDenied(binary, "its path contains a symbolic link")
    else:
        program = _look_up(binary, tuple(path))
    if not (program.real.is_file() and os.access(program.real, os.X_OK)):
        raise ShellNotExecutable(binary)
    _check_owner(binary, program.real, home)
    _check_other_name(binary, program.real)
    return evolve(program, interpreters=interpreters_of(binary, program.real))


def safe_folders(path: Iterable[str]) -> Iterator[str]:
    """Yield the folders that only root can write to."""
    for folder in path:
        try:
            status = Path(folder).stat()
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == 0 and not status.st_mode & _OTHERS_WRITE:
            yield folder


def _look_up(name: str, path: tuple[str, ...]) -> ShellProgram:
    searched = list(safe_folders(path))
    for folder in searched:
        found = Path(folder, name)
        if found.is_file():
            return ShellProgram(found, Path(os.path.realpath(found)))
    skipped = ", ".join(folder for folder in path if folder not in searched and Path(folder).is_dir())
    raise ShellMissing(name, ", ".join(searched), skipped)


def _check_other_name(binary: str, real: Path) -> None:
    """Refuse a harmless name of a program that needs more rights, because the grant was compared with the name."""
    for can, what in ((runs_code, "executes code in its arguments"), (runs_others, "runs other programs")):
        if can(real.name) and not can(binary):
            problem = f"it is another name for `{real.name}`, which {what}"
            raise ShellDenied(binary, problem, hint=f"request `{real}`, and grant that")


def _check_owner(binary: str, real: Path, home: Path) -> None:
    status = real.stat()
    if real.is_relative_to(os.path.realpath(home)):
        raise ShellDenied(binary, "it is in the host's own folder, where skills can write files")
    if status.st_uid not in (0, os.geteuid()):
        raise ShellDenied(binary, f"it belongs to another user ({status.st_uid})")
    if status.st_mode & stat.S_IWOTH:
        raise ShellDenied(binary, "it is world-writable")
