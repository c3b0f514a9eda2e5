"""A folder whose files are named by others. All waits are cancellable; what blocks runs in threads."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from anyio import CancelScope, CapacityLimiter, from_thread, to_thread
from attrs import frozen
from sideband.state import locked_folders

from ._errors import FileRefused, FileTaken, FileTooLarge
from ._listing import FolderEntry, Listing, entry_of, list_folder
from ._paths import parts_of
from ._reading import FileReader
from ._steps import PIECE, digest_of, entered, opened, ordinary, settle, translating
from ._writing import NewFile, check_expected, open_new

T = TypeVar("T")


@frozen
class ConfinedFolder:
    """A folder whose files are named by others.

    Paths are as ``normal_path`` answers them, or a resolved path without its first ``/`` if the folder is ``/``.

    Args:
        root: the folder. It is trusted, must not be a link itself, and is made when something is written.
        excluded: folders below it that are never entered, under whatever path they are reached.
        limiter: bounds the threads; by default anyio's own does.

    Example:
        >>> folder = ConfinedFolder(Path("/var/lib/example"))
        >>> async def save(text: str) -> None:
        ...     async with folder.writing("notes/today.txt", overwrite=True) as file:
        ...         await file.write(text.encode())
        ...         await file.commit(overwrite=True)
    """

    root: Path
    excluded: tuple[Path, ...] = ()
    limiter: CapacityLimiter | None = None

    def shown(self, path: str) -> str:
        """How messages call what is at ``path``."""
        return f"/{path}" if self.root == Path("/") else path

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """All of an ordinary file.

        Raises:
            FileTooLarge: it has more than ``max_bytes``.
            FileMissing, FileRefused, FileFailed: as ``reading``.
        """

        def work() -> bytes:
            with _opened(self, path) as (descriptor, found):
                data = _read_at_most(descriptor, max_bytes + 1)
                if len(data) > max_bytes:
                    raise FileTooLarge(self.shown(path), max(found.st_size, len(data)), max_bytes)
                return data

        return await self._in_thread(work)

    @asynccontextmanager
    async def reading(self, path: str) -> AsyncIterator[FileReader]:
        """An ordinary file, to be read piece by piece.

        Raises:
            FileMissing: it is not there.
            FileRefused: it is no ordinary file, or a step on the way is a link.
            FileFailed: the system refuses.
        """
        async with self._kept(_opened(self, path)) as (descriptor, found):
            yield FileReader(self.shown(path), entry_of(parts_of(path)[-1], found), descriptor, self.limiter)

    @asynccontextmanager
    async def writing(
        self, path: str, *, overwrite: bool = False, max_bytes: int | None = None
    ) -> AsyncIterator[NewFile]:
        """A new file. Without a commit, nothing is left, except folders on the way, which are made if they are missing.

        Args:
            path: where it will be.
            overwrite: whether there may be an ordinary file already; ``commit`` is asked again.
            max_bytes: how large it may become.

        Raises:
            FileTaken: there is one, and it must not be replaced.
            FileRefused: there is no ordinary file at its place, or a step on the way is a link or a file.
            FileFailed: the system refuses.
        """

        @contextmanager
        def open_it() -> Iterator[NewFile]:
            with _parent(self, path, create=True) as (folder, name):
                file = open_new(
                    folder, name, self.shown(path), overwrite=overwrite, max_bytes=max_bytes, limiter=self.limiter
                )
                try:
                    yield file
                finally:
                    file.discard()

        async with self._kept(open_it()) as file:
            yield file

    async def entry(self, path: str) -> FolderEntry:
        """What is known about a path. A link is not followed.

        Raises:
            FileMissing: there is nothing.
            FileRefused: a step on the way is a link or a file.
            FileFailed: the system refuses.
        """

        def work() -> FolderEntry:
            if not parts_of(path):
                with _folder(self, path) as folder:
                    return entry_of(path, os.fstat(folder))
            with _parent(self, path) as (folder, name), translating(self.shown(path)):
                return entry_of(name, os.stat(name, dir_fd=folder, follow_symlinks=False))

        return await self._in_thread(work)

    async def digest(self, path: str, *, max_bytes: int | None = None) -> str:
        """The SHA-256 of an ordinary file, in hexadecimal.

        Raises:
            FileTooLarge: it has more than ``max_bytes``.
            FileMissing, FileRefused, FileFailed: as ``reading``.
        """

        def work() -> str:
            with _opened(self, path) as (descriptor, found):
                if max_bytes is not None and found.st_size > max_bytes:
                    raise FileTooLarge(self.shown(path), found.st_size, max_bytes)
                with translating(self.shown(path)):
                    return digest_of(descriptor)

        return await self._in_thread(work)

    async def list(self, path: str = ".", *, limit: int, after: str = "", hidden: bool = False) -> Listing:
        """The names in a folder, in order, however many there are.

        Args:
            path: the folder.
            limit: how many entries to answer at most.
            after: only names after this one.
            hidden: whether names that begin with a dot are meant too.

        Raises:
            FileMissing: there is no such folder.
            FileRefused: it is a file or a link, or a step on the way is one.
            FileFailed: the system refuses.
        """

        def work() -> Listing:
            with _folder(self, path) as folder, translating(self.shown(path)):
                return list_folder(folder, limit, after, hidden=hidden)

        return await self._in_thread(work)

    async def make(self, path: str) -> bool:
        """Make a folder, and those on the way, for the owner only. Answers whether it was not there before.

        Raises:
            FileTaken: there is a file with this name.
            FileRefused: a step on the way is a link or a file.
            FileFailed: the system refuses.
        """

        def work() -> bool:
            with _parent(self, path, create=True) as (folder, name), translating(self.shown(path)):
                try:
                    os.mkdir(name, mode=0o700, dir_fd=folder)
                except FileExistsError:
                    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                        return False
                    raise
                settle(folder, self.shown(path))
                return True

        return await self._in_thread(work)

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        """Remove an ordinary file.

        Args:
            path: which.
            expected: the SHA-256 that it must have.

        Raises:
            FileMissing: it is not there.
            FileChanged: it is not what was expected.
            FileRefused: it is no ordinary file, or a step on the way is a link or a file.
            FileFailed: the system refuses.
        """

        def work() -> None:
            shown = self.shown(path)
            with _parent(self, path) as (folder, name), translating(shown), locked_folders(folder):
                check_expected(folder, name, shown, expected)
                ordinary(folder, name, shown)
                os.unlink(name, dir_fd=folder)
                settle(folder, self.shown(path))

        await self._in_thread(work)

    async def remove_folder(self, path: str) -> None:
        """Remove a folder with nothing in it.

        Raises:
            FileMissing: it is not there.
            FileRefused: there is something in it, it is no folder, or a step on the way is a link or a file.
            FileFailed: the system refuses.
        """

        def work() -> None:
            with _parent(self, path) as (folder, name), translating(self.shown(path)):
                os.rmdir(name, dir_fd=folder)
                settle(folder, self.shown(path))

        await self._in_thread(work)

    async def move(
        self,
        path: str,
        target: str,
        *,
        into: ConfinedFolder | None = None,
        overwrite: bool = False,
        expected: str | None = None,
    ) -> None:
        """Give an ordinary file another name, in this folder or in another one of the same file system.

        Args:
            path: the file.
            target: its new path. Folders that are missing are made.
            into: where ``target`` is; here by default.
            overwrite: whether an ordinary file at ``target`` may be replaced.
            expected: the SHA-256 that the file which is moved must have.

        Raises:
            FileMissing: it is not there.
            FileTaken: there is something at the target that must not be replaced.
            FileChanged: it is not what was expected.
            FileRefused: one of them is no ordinary file, or a step on the way is a link or a file.
            FileFailed: the system refuses; between two file systems, it always does.
        """
        other = into or self
        shown, shown_target = self.shown(path), other.shown(target)

        def work() -> None:
            with (
                _parent(self, path) as (folder, name),
                _parent(other, target, create=True) as (target_folder, target_name),
                translating(shown_target),
                locked_folders(folder, target_folder),
            ):
                ordinary(folder, name, shown)
                check_expected(folder, name, shown, expected)
                _rename(folder, name, target_folder, target_name, shown_target, overwrite=overwrite)
                settle(folder, self.shown(path))
                settle(target_folder, shown_target)

        await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self.limiter)

    @asynccontextmanager
    async def _kept(self, blocking: contextlib.AbstractContextManager[T]) -> AsyncIterator[T]:
        """Enter and leave in a thread what blocks."""
        value = await self._in_thread(blocking.__enter__)
        try:
            yield value
        finally:
            with CancelScope(shield=True):
                await self._in_thread(lambda: blocking.__exit__(None, None, None))


@contextmanager
def _folder(where: ConfinedFolder, path: str) -> Iterator[int]:
    shown = where.shown(path)
    with entered(where.root, parts_of(path), shown, excluded=where.excluded) as folder:
        yield folder


@contextmanager
def _parent(where: ConfinedFolder, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that a path is in, and its name there."""
    shown, parts = where.shown(path), parts_of(path)
    if not parts:
        raise FileRefused(shown, "it is the folder itself")
    with entered(where.root, parts[:-1], shown, create=create, excluded=where.excluded) as folder:
        yield folder, parts[-1]


@contextmanager
def _opened(where: ConfinedFolder, path: str) -> Iterator[tuple[int, os.stat_result]]:
    with _parent(where, path) as (folder, name), opened(folder, name, where.shown(path)) as found:
        yield found


def _read_at_most(descriptor: int, left: int) -> bytes:
    pieces = []
    while left and (piece := os.read(descriptor, min(PIECE, left))):
        from_thread.check_cancelled()
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _rename(folder: int, name: str, target_folder: int, target: str, shown: str, *, overwrite: bool) -> None:
    try:
        found = os.stat(target, dir_fd=target_folder, follow_symlinks=False)
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise FileRefused(shown, "what is there is no ordinary file")
    if found is not None and not overwrite:
        raise FileTaken(shown)
    from_thread.check_cancelled()
    if overwrite:
        os.replace(name, target, src_dir_fd=folder, dst_dir_fd=target_folder)
        return
    # a link, unlike a rename, never takes the place of what came meanwhile
    os.link(name, target, src_dir_fd=folder, dst_dir_fd=target_folder, follow_symlinks=False)
    os.unlink(name, dir_fd=folder)
