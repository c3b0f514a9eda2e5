"""Which file a program's name means."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from ._errors import ShellDenied, ShellMissing, ShellNotExecutable
from ._scope import runs_code

_NAME = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.+@\[-]{0,127}\Z")
# The system takes no longer path, and resolving one takes time by the square of its length.
_LONGEST = 4_096
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@frozen
class ShellProgram:
    """A program that was found.

    Args:
        path: what to run.
        real: the same, without symbolic links.
    """

    path: Path
    real: Path


def check_binary(text: str) -> str:
    """The program as capabilities call it: an absolute path is resolved through all symbolic links.

    Raises:
        ValueError: it can't name a program.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a path has at most {_LONGEST:,} characters")
    if "\x00" in text:
        raise ValueError("a path holds no NUL")
    if text.startswith("/"):
        return os.path.realpath(text)
    if not _NAME.match(text):
        raise ValueError("give a plain name such as `git`, or an absolute path; arguments belong into `args`")
    return text


def find_program(binary: str, path: Iterable[str], home: Path) -> ShellProgram:
    """Find the file.

    Args:
        binary: a name, or an absolute path.
        path: the folders in which a name is looked up.
        home: the host's folder, where nothing is run.

    Raises:
        ShellMissing: there is none.
        ShellDenied: others could have put it there.
        ShellNotExecutable: it is no program.
    """
    if binary.startswith("/"):
        program = ShellProgram(Path(binary), Path(os.path.realpath(binary)))
        if not program.real.exists():
            raise ShellMissing(binary, "that very path")
        if program.real != program.path:
            raise ShellDenied(binary, "there is a link on the way")
    else:
        program = _look_up(binary, tuple(path))
    if not (program.real.is_file() and os.access(program.real, os.X_OK)):
        raise ShellNotExecutable(binary)
    _check_owner(binary, program.real, home)
    if runs_code(program.real.name) and not runs_code(binary):
        # The grant was compared with a name that says nothing of it.
        raise ShellDenied(binary, f"it is another name of `{program.real.name}`, which runs what its arguments say")
    return program


def safe_folders(path: Iterable[str]) -> Iterator[str]:
    """Those of the folders that only root may write to."""
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


def _check_owner(binary: str, real: Path, home: Path) -> None:
    status = real.stat()
    if real.is_relative_to(os.path.realpath(home)):
        raise ShellDenied(binary, "it lies in the host's own folder, where skills may have files")
    if status.st_uid not in (0, os.geteuid()):
        raise ShellDenied(binary, f"it belongs to another user ({status.st_uid})")
    if status.st_mode & stat.S_IWOTH:
        raise ShellDenied(binary, "everybody may write to it")
