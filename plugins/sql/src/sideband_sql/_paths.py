"""Maps a `db` parameter to a file, and to the name that capabilities use for it.

A logical name is a file in `SIDEBAND_HOME/data/`. Anything else must be absolute (or begin with `~/`), and all its
symbolic links are resolved before it is compared with the grant, so that a link cannot give one file the rights of
another.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from sideband.state import open_beneath
from sideband_confined_files import identity_of

from ._errors import SqlDenied, SqlMissing, SqlReplaced, SqlStorage

_LOGICAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
# PATH_MAX on Linux; resolving a path takes time that grows with the square of its length.
_MAX_PATH = 4_096
# O_PATH opens a folder that may not be readable
_OPEN_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
# files that engines keep beside a database: opening one by its own name would bypass the database's scope
_COMPANIONS = ("-wal", "-shm", "-journal", ".duckdb.wal")


@frozen
class DatabaseTarget:
    """A database that was located.

    Args:
        name: the name in capabilities and messages.
        file: the absolute path, without symbolic links.
        managed: whether the file is in the host's data folder, where sideband chooses the journal mode.
    """

    name: str
    file: Path
    managed: bool

    @property
    def engine(self) -> str:
        """The engine of the database, derived from the file name and never from its content."""
        return "duckdb" if self.file.suffix.lower() == ".duckdb" else "sqlite"


def check_database_name(text: str) -> str:
    """Check that the text is a valid database name.

    Raises:
        ValueError: if it is not; describes the problem.
    """
    if len(text) > _MAX_PATH:
        raise ValueError(f"path exceeds {_MAX_PATH:,} characters")
    if text.casefold().endswith(_COMPANIONS):
        raise ValueError("expected a database, got an auxiliary file of one")
    if "\x00" in text:
        raise ValueError("path contains a NUL character")
    if not (text.startswith(("/", "~/")) or _LOGICAL.match(text)):
        raise ValueError("expected a file name such as `notes.db`, an absolute path, or a path that begins with `~/`")
    return text


def scope_path(database: str) -> str:
    """Return the name that capabilities use: the logical name, or the resolved absolute path."""
    if _LOGICAL.match(database):
        return database
    return os.path.realpath(Path(database).expanduser())


def locate(database: str, home: Path, *, create: bool) -> DatabaseTarget:
    """Return the target of a database name. With ``create``, create a missing file, accessible by its owner only.

    Raises:
        SqlMissing: if the file or, with ``create``, its folder does not exist.
        SqlDenied: if it is not a regular file, or belongs to the host itself.
        SqlStorage: on an I/O error.
    """
    data = Path(os.path.realpath(home)) / "data"
    managed = bool(_LOGICAL.match(database))
    name = scope_path(database)
    file = data / name if managed else Path(name)
    if not managed and file.is_relative_to(data.parent) and not file.is_relative_to(data):
        raise SqlDenied(f"`{name}` belongs to the host", hint="use the host's own commands to access its state")
    try:
        if create:
            _create(file, data if managed else None)
        found = file.lstat()
    except FileNotFoundError:
        raise SqlMissing(name) from None
    except OSError as error:
        raise SqlStorage(name, error.strerror or type(error).__name__) from error
    check_regular(name, found)
    return DatabaseTarget(name, file, managed)


@contextmanager
def pinned_folder(target: DatabaseTarget) -> Iterator[tuple[int, int]]:
    """Hold the file's folder open, so that replacing a folder on the path later has no effect.

    The path contained no links when it was resolved. It is walked component by component without following links, so a
    link that was added since is an error.

    Yields:
        The descriptor of the folder, and the user ID of the file's owner.

    Raises:
        SqlMissing: if the file does not exist any more.
        SqlDenied: if the path now contains a link, or the file is not a regular file.
        SqlStorage: on an I/O error.
    """
    folder = _open_folder(target)
    try:
        try:
            found = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            raise SqlMissing(target.name) from None
        check_regular(target.name, found)
        yield folder, found.st_uid
    finally:
        os.close(folder)


def identities(folder: int, target: DatabaseTarget) -> list[str]:
    """Return what identifies the folder of a database and its file, so that undo recognizes them.

    Args:
        folder: the descriptor of the folder, from ``pinned_folder``.
        target: the database.

    Raises:
        SqlMissing: if the file does not exist.
        SqlStorage: on an I/O error.
    """
    try:
        if not hasattr(os, "O_PATH"):
            found = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
            return [identity_of(folder), f"{found.st_dev:x}:{found.st_ino:x}"]
        # closing a descriptor opened with O_PATH does not drop SQLite's locks
        file = os.open(target.file.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            return [identity_of(folder), identity_of(file)]
        finally:
            os.close(file)
    except FileNotFoundError:
        raise SqlMissing(target.name) from None
    except OSError as error:
        raise SqlStorage(target.name, error.strerror or type(error).__name__) from error


def check_recorded(target: DatabaseTarget, name: str, recorded: Sequence[str], now: Sequence[str]) -> None:
    """Check that a database is the recorded one.

    Args:
        target: the database at the recorded path.
        name: the recorded name.
        recorded: the recorded result of ``identities``.
        now: its result for the target.

    Raises:
        SqlReplaced: if it is another one.
    """
    if target.name != name:
        raise SqlReplaced(name, f"it leads to `{target.name}` now, through a symbolic link")
    if list(recorded[:1]) != list(now[:1]):
        raise SqlReplaced(name, f"`{target.file.parent}` is now another folder")
    if list(recorded) != list(now):
        raise SqlReplaced(name, "it is now another file")


def _open_folder(target: DatabaseTarget) -> int:
    """Open the file's folder component by component, without following links."""
    try:
        return open_beneath(Path("/"), target.file.parts[1:-1], _OPEN_FOLDER)
    except FileNotFoundError:
        raise SqlMissing(target.name) from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise SqlDenied(
                f"a folder on the path of `{target.name}` was replaced by a link",
                hint="try again when the path is stable",
            ) from None
        raise SqlStorage(target.name, error.strerror or type(error).__name__) from error


def check_regular(name: str, found: os.stat_result) -> None:
    """Check that the file is a regular file with one hard link.

    Raises:
        SqlDenied: if it is not.
    """
    if not stat.S_ISREG(found.st_mode):
        raise SqlDenied(f"`{name}` is not a regular file", hint="name the database file itself, not a link or a folder")
    if found.st_nlink > 1:
        raise SqlDenied(
            f"`{name}` has another hard link",
            hint="remove the other link: grants and SQLite's locks are bound to one name",
        )


def _create(file: Path, folder: Path | None) -> None:
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # O_EXCL also refuses to follow a link
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
