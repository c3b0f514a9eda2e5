"""Which file a `db` parameter means, and under which name capabilities know it.

A logical name is a file in `HOME/data/`; anything else must be absolute (or begin with `~/`) and is resolved through
all symbolic links before it is compared with the grant, so that a link can't lend one file the rights of another.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from sideband.state import open_beneath

from ._errors import SqlDenied, SqlMissing, SqlStorage

_LOGICAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
# The system takes no longer path, and resolving one takes time by the square of its length.
_LONGEST = 4_096
# stands for the folder alone: it need not be one that may be listed
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
# files that engines keep beside a database: as a name of their own they would bypass the database's scope
_COMPANIONS = ("-wal", "-shm", "-journal", ".duckdb.wal")


@frozen
class DatabaseTarget:
    """A database that was found.

    Args:
        name: as capabilities and messages call it.
        file: the file itself, absolute, without symbolic links.
        managed: whether it lies in the host's data folder, where sideband chooses the journal.
    """

    name: str
    file: Path
    managed: bool

    @property
    def engine(self) -> str:
        """Which driver opens it: told by its name, never by what is in it."""
        return "duckdb" if self.file.suffix.lower() == ".duckdb" else "sqlite"


def check_database_name(text: str) -> str:
    """Let through what can name a database.

    Raises:
        ValueError: what is wrong with it.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a path has at most {_LONGEST:,} characters")
    if text.casefold().endswith(_COMPANIONS):
        raise ValueError("this is a file that is kept beside a database, not a database")
    if "\x00" in text:
        raise ValueError("a path holds no NUL")
    if not (text.startswith(("/", "~/")) or _LOGICAL.match(text)):
        raise ValueError("give a plain file name such as `notes.db`, an absolute path, or one that begins with `~/`")
    return text


def scope_path(database: str) -> str:
    """The name under which capabilities know it: the logical name, or the resolved absolute path."""
    if _LOGICAL.match(database):
        return database
    return os.path.realpath(Path(database).expanduser())


def locate(database: str, home: Path, *, create: bool) -> DatabaseTarget:
    """Find the file, and create it (for its owner only) if asked to and it is not there.

    Raises:
        SqlMissing: there is no such file, or no folder to create it in.
        SqlDenied: it is no plain file, or belongs to the host itself.
        SqlStorage: the file system refuses.
    """
    data = Path(os.path.realpath(home)) / "data"
    managed = bool(_LOGICAL.match(database))
    name = scope_path(database)
    file = data / name if managed else Path(name)
    if not managed and file.is_relative_to(data.parent) and not file.is_relative_to(data):
        raise SqlDenied(f"`{name}` belongs to the host", hint="its own state is reached through its own commands")
    try:
        if create:
            _create(file, data if managed else None)
        found = file.lstat()
    except FileNotFoundError:
        raise SqlMissing(name) from None
    except OSError as error:
        raise SqlStorage(name, error.strerror or type(error).__name__) from error
    check_plain(name, found)
    return DatabaseTarget(name, file, managed)


@contextmanager
def pinned(target: DatabaseTarget) -> Iterator[tuple[int, int]]:
    """Hold the folder of the file open: whatever is swapped on the way to it later, this one stays.

    The path has no links since it was resolved; each step is taken without following one, so that a link that was put
    there since is an error.

    Yields:
        the folder's descriptor, and who owns the file.

    Raises:
        SqlMissing: the file is gone.
        SqlDenied: there is a link now, or no plain file.
        SqlStorage: the file system refuses.
    """
    folder = _open_folder(target)
    try:
        try:
            found = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            raise SqlMissing(target.name) from None
        check_plain(target.name, found)
        yield folder, found.st_uid
    finally:
        os.close(folder)


def _open_folder(target: DatabaseTarget) -> int:
    """Open the folder of the file, one step at a time, none of which follows a link."""
    try:
        return open_beneath(Path("/"), target.file.parts[1:-1], _PLACE)
    except FileNotFoundError:
        raise SqlMissing(target.name) from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise SqlDenied(
                f"a folder on the way to `{target.name}` was replaced by a link", hint="try again once it is still"
            ) from None
        raise SqlStorage(target.name, error.strerror or type(error).__name__) from error


def check_plain(name: str, found: os.stat_result) -> None:
    """Let through a file that has one name.

    Raises:
        SqlDenied: it is something else, or has another name.
    """
    if not stat.S_ISREG(found.st_mode):
        raise SqlDenied(f"`{name}` is no plain file", hint="name the database file itself, not a link or a folder")
    if found.st_nlink > 1:
        raise SqlDenied(
            f"`{name}` has another name elsewhere", hint="a hard link: rights are by name, and SQLite's locks as well"
        )


def _create(file: Path, folder: Path | None) -> None:
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # O_EXCL does not follow a link either
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
