"""Atomic file writes: write under a temporary name, then rename."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from attrs import frozen

from ..errors import StateUnwritable
from ._home import make_home

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUFFIX = ".sideband-new"


@frozen(eq=False)
class PartialFile:
    """A file that is being written, with access for its owner only. Always call ``discard``, also after ``commit``.

    Args:
        path: the temporary path.
        descriptor: the descriptor to write to.
    """

    path: Path
    descriptor: int

    @classmethod
    def create(cls, path: Path) -> PartialFile:
        """Create a file under this temporary name, which must not exist.

        Raises:
            OSError: if the file cannot be created.
        """
        return cls(path, os.open(path, _FLAGS, 0o600))

    def commit(self, target: Path, *, overwrite: bool = True) -> None:
        """Sync the file, rename it to ``target``, and sync the folder.

        Raises:
            FileExistsError: if ``target`` exists and ``overwrite`` is ``False``.
            OSError: if a system call failed.
        """
        os.fsync(self.descriptor)
        if overwrite:
            self.path.replace(target)
        else:
            target.hardlink_to(self.path)  # fails atomically if the target exists
        sync_folder(target.parent)

    def discard(self) -> None:
        """Close the file and remove its temporary name."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes | Iterable[bytes], *, overwrite: bool = True) -> None:
    """Write a file atomically and durably, with access for its owner only.

    Args:
        path: the file. Its folder must exist.
        content: the content, or an iterable of its pieces.
        overwrite: whether to replace an existing file.

    Raises:
        FileExistsError: if the file exists and ``overwrite`` is ``False``.
        OSError: if a system call failed. The old file is unchanged, unless only the final sync of the folder failed.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp(), "notes")
        >>> replace_file(path, b"new")
        >>> path.read_text()
        'new'
    """
    partial = PartialFile.create(path.parent / f".{path.name}.{token_hex(8)}{_SUFFIX}")
    try:
        with os.fdopen(partial.descriptor, "wb", closefd=False) as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        partial.commit(path, overwrite=overwrite)
    finally:
        partial.discard()


def remove_partial_files(path: Path) -> None:
    """Remove the temporary files of processes that were killed in ``replace_file`` of this path.

    No process may be in ``replace_file`` of this path now.

    Raises:
        OSError: if a file cannot be removed.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        left.unlink(missing_ok=True)


def write_state_file(path: Path, text: str) -> None:
    """Write a small file of the host's state with ``replace_file``. Create its folder if necessary.

    Raises:
        StateUnwritable: if the file or folder cannot be written.
    """
    make_home(path.parent)
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise StateUnwritable(path, error) from error


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk.

    Raises:
        OSError: if the folder cannot be opened or synced.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
