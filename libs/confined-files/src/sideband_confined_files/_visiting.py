"""Visit the files below a folder in one thread. No step follows a link. Blocks."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from anyio import from_thread
from attrs import field, frozen

from ._listing import is_text
from ._steps import check_enterable, check_not_the_kernels, identities_of, open_regular, opened, translating

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK_AFTER = 1_000


@frozen
class OpenFolder:
    """An open folder. Use it only in the function that ``ConfinedFolder.visit`` calls.

    Attributes:
        path: its path as shown in messages.
    """

    path: str
    _descriptor: int = field(repr=False)
    _forbidden: frozenset[tuple[int, int]] = field(repr=False)

    @classmethod
    def of(cls, path: str, descriptor: int, excluded: Iterable[Path]) -> OpenFolder:
        """Return the folder of a descriptor, below which some folders must not be entered."""
        return cls(path, descriptor, frozenset(identities_of(excluded)))

    def names(self, *, hidden: bool, limit: int) -> tuple[list[str], list[str]]:
        """Return the names of the files and of the folders in it, each sorted.

        Names that are not valid UTF-8 are left out, and so are links, pipes and devices.

        Args:
            hidden: whether to include names that begin with a dot.
            limit: the maximum number of names. Which ones are left out beyond it depends on the file system.

        Raises:
            FileFailed: if a system call fails.
        """
        files, folders = [], []
        with translating(self.path), os.scandir(self._descriptor) as found:
            for number, one in enumerate(found):
                if number % _LOOK_AFTER == 0:
                    from_thread.check_cancelled()
                if not is_text(one.name) or (one.name.startswith(".") and not hidden):
                    continue
                if one.is_dir(follow_symlinks=False):
                    folders.append(one.name)
                elif one.is_file(follow_symlinks=False):
                    files.append(one.name)
                if len(files) + len(folders) == limit:
                    break
        return sorted(files), sorted(folders)

    @contextmanager
    def folder(self, name: str) -> Iterator[OpenFolder]:
        """Open a folder in it.

        Raises:
            FileMissing: if it does not exist.
            FileRefused: if it is a file or a link, excluded, or on a kernel file system.
            FileFailed: if a system call fails.
        """
        path = f"{self.path.rstrip('/')}/{name}"
        with translating(path):
            descriptor = os.open(name, _FOLDER, dir_fd=self._descriptor)
        try:
            with translating(path):
                check_enterable(descriptor, set(self._forbidden), path)
                check_not_the_kernels(descriptor, path)
            yield OpenFolder(path, descriptor, self._forbidden)
        finally:
            os.close(descriptor)

    def file(self, name: str) -> AbstractContextManager[tuple[int, os.stat_result]]:
        """Open a regular file in it, and return its descriptor and its metadata.

        Raises:
            FileMissing: if it does not exist.
            FileRefused: if it is not a regular file.
            FileFailed: if a system call fails.
        """
        return opened(self._descriptor, name, f"{self.path.rstrip('/')}/{name}")

    def open_listed(self, name: str) -> tuple[int, os.stat_result]:
        """Open a file whose name ``names`` has returned, as ``file`` does. Faster; the caller closes the descriptor.

        Raises:
            FileMissing, FileRefused, FileFailed: as for ``file``.
        """
        return open_regular(self._descriptor, name, f"{self.path.rstrip('/')}/{name}", is_listed=True)

    def is_folder(self, name: str) -> bool:
        """Return whether it has a folder of this name."""
        with contextlib.suppress(OSError):
            return stat.S_ISDIR(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode)
        return False
