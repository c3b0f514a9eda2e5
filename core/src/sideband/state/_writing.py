"""Files that are there whole or not at all: written under a name that is never read, then given their own."""

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
    """A file that is being written, for its owner only. Always ``discard`` it: what was not committed is gone then.

    Args:
        path: its temporary name.
        descriptor: where it is written.
    """

    path: Path
    descriptor: int

    @classmethod
    def create(cls, path: Path) -> PartialFile:
        """Begin a file under this temporary name, which must be new.

        Raises:
            OSError: the system refuses.
        """
        return cls(path, os.open(path, _FLAGS, 0o600))

    def commit(self, target: Path, *, overwrite: bool = True) -> None:
        """Bring it to the disk, then give it its name, then bring the name to the disk.

        Raises:
            FileExistsError: there is something with this name, and ``overwrite`` is not set.
            OSError: the system refuses.
        """
        os.fsync(self.descriptor)
        if overwrite:
            self.path.replace(target)
        else:
            target.hardlink_to(self.path)  # fails if it is there, without a moment in between
        sync_folder(target.parent)

    def discard(self) -> None:
        """Close it, and remove its temporary name."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes | Iterable[bytes], *, overwrite: bool = True) -> None:
    """Put a file that only its owner can read in the place of ``path``, durably; or leave what was there.

    Args:
        path: the file. Its folder must be there.
        content: all of it, or pieces of it.
        overwrite: whether it may be there already.

    Raises:
        FileExistsError: it is, and may not.
        OSError: the system refuses. If it only refuses the last step, to sync the folder, the new file is there.

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
    """Remove what processes left that were killed in ``replace_file`` of this path. None may be in it now.

    Raises:
        OSError: the system refuses.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_SUFFIX}"):
        left.unlink(missing_ok=True)


def write_state_file(path: Path, text: str) -> None:
    """``replace_file`` for a small file of the host's own state; its folder is made if it is not there.

    Raises:
        StateUnwritable: it could not be written.
    """
    make_home(path.parent)
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise StateUnwritable(path, error) from error


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk.

    Raises:
        OSError: the system refuses.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
