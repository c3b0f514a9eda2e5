"""A folder that confines access by untrusted paths. All waits can be cancelled; blocking calls run in threads."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from anyio import CancelScope, CapacityLimiter, from_thread, to_thread
from attrs import evolve, frozen

from ._errors import FileChanged, FileRefused, FileTooLarge
from ._listing import FolderEntry, Listing, entry_of, list_folder
from ._locks import FolderLocks
from ._paths import parts_of
from ._reading import FileReader
from ._recorded import RecordedFolders, check_kind, create_folder, opened_folder
from ._steps import PIECE, digest_of, entered, opened, ordinary, settle, translating
from ._visiting import OpenFolder
from ._writing import NewFile, check_expected, open_new, rename

T = TypeVar("T")


@frozen
class ConfinedFolder:
    """A folder that confines access by untrusted paths.

    Paths are those that ``normal_path`` returns, or a resolved path without its leading ``/`` if the folder is ``/``.

    Args:
        root: the folder. It is trusted, must not be a link itself, and is created by the first write.
        excluded: folders below it that are never entered, by any path.
        limiter: bounds the number of threads; anyio's default limiter if ``None``.
        recorded: the recorded folder to which all access is restricted, see ``through``.
        locks: the locks between hosts that change files in the same folder. Without them, only writers in one process
            that lock files themselves can rely on ``expected``. Their folders are never entered either.

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
    recorded: RecordedFolders | None = None
    locks: FolderLocks | None = None

    def through(self, recorded: RecordedFolders) -> ConfinedFolder:
        """Return this folder, restricted to one recorded folder: paths that lead to another one raise ``FileReplaced``.

        Args:
            recorded: the folders of an earlier result of ``folders``.
        """
        return evolve(self, recorded=recorded)

    def shown(self, path: str) -> str:
        """Return ``path`` as shown in messages."""
        return str(self.root / path) if self.root == Path("/") else path

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """Return the content of a regular file.

        Raises:
            FileTooLarge: if it has more than ``max_bytes``.
            FileMissing, FileRefused, FileFailed: as for ``reading``.
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
        """Open a regular file, to be read in chunks.

        Raises:
            FileMissing: if it does not exist.
            FileRefused: if it is not a regular file, or a folder in the path is a link.
            FileFailed: if a system call fails.
        """
        async with self._kept(_opened(self, path)) as (descriptor, found):
            yield FileReader(self.shown(path), entry_of(parts_of(path)[-1], found), descriptor, self.limiter)

    @asynccontextmanager
    async def writing(
        self, path: str, *, overwrite: bool = False, max_bytes: int | None = None
    ) -> AsyncIterator[NewFile]:
        """Open a new file. Without a commit, nothing remains except parent folders, which are created if missing.

        Args:
            path: its path once committed.
            overwrite: whether a regular file may already exist at ``path``; ``commit`` takes the same argument.
            max_bytes: the size limit, or ``None`` for no limit.

        Raises:
            FileTaken: if a file exists and must not be replaced.
            FileRefused: if something other than a regular file exists, or a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        @contextmanager
        def open_it() -> Iterator[NewFile]:
            with _parent(self, path, create=True) as (folder, name):
                file = open_new(
                    folder,
                    name,
                    self.shown(path),
                    overwrite=overwrite,
                    max_bytes=max_bytes,
                    limiter=self.limiter,
                    locks=self.locks,
                )
                try:
                    yield file
                finally:
                    file.discard()

        async with self._kept(open_it()) as file:
            yield file

    async def folders(self, path: str, *, itself: bool = False, create: bool = False) -> tuple[str, ...]:
        """Return the identities of the folders on a path, for ``through``: this folder first, the parent last.

        Args:
            path: the path.
            itself: whether ``path`` is a folder, which is the last one then.
            create: create missing folders, accessible to the owner only.

        Raises:
            FileMissing: if a folder does not exist.
            FileRefused: if a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        def work() -> tuple[str, ...]:
            seen: list[str] = []
            inside = _folder if itself or not parts_of(path) else _parent
            with inside(self, path, create=create, seen=seen):
                return tuple(seen)

        return await self._in_thread(work)

    async def entry(self, path: str) -> FolderEntry:
        """Return the metadata of a path. A link is not followed.

        Raises:
            FileMissing: if the path does not exist.
            FileRefused: if a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        def work() -> FolderEntry:
            if not parts_of(path):
                with _folder(self, path) as folder:
                    return entry_of(path, os.fstat(folder))
            with _parent(self, path) as (folder, name), translating(self.shown(path)):
                return entry_of(name, os.stat(name, dir_fd=folder, follow_symlinks=False))

        return await self._in_thread(work)

    async def digest(self, path: str, *, max_bytes: int | None = None) -> str:
        """Return the SHA-256 of a regular file in hexadecimal.

        Raises:
            FileTooLarge: if it has more than ``max_bytes``.
            FileMissing, FileRefused, FileFailed: as for ``reading``.
        """

        def work() -> str:
            with _opened(self, path) as (descriptor, found):
                if max_bytes is not None and found.st_size > max_bytes:
                    raise FileTooLarge(self.shown(path), found.st_size, max_bytes)
                with translating(self.shown(path)):
                    return digest_of(descriptor)

        return await self._in_thread(work)

    async def list(self, path: str = ".", *, limit: int, after: str = "", hidden: bool = False) -> Listing:
        """List the names in a folder, sorted. Memory use does not depend on how many names the folder has.

        Args:
            path: the folder.
            limit: the maximum number of entries.
            after: return only names that sort after this one.
            hidden: whether to include names that begin with a dot.

        Raises:
            FileMissing: if the folder does not exist.
            FileRefused: if the path, or a folder in it, is a file or a link.
            FileFailed: if a system call fails.
        """

        def work() -> Listing:
            with _folder(self, path) as folder, translating(self.shown(path)):
                return list_folder(folder, limit, after, hidden=hidden)

        return await self._in_thread(work)

    async def visit(self, path: str, work: Callable[[OpenFolder], T]) -> T:
        """Call a function in a thread, with an open folder below which it may visit many files.

        It should call ``anyio.from_thread.check_cancelled`` now and then.

        Args:
            path: the folder.
            work: the function.

        Raises:
            FileMissing: if the folder does not exist.
            FileRefused: if the path, or a folder in it, is a file or a link.
            FileFailed: if a system call fails.
        """

        def run() -> T:
            excluded = (*self.excluded, *(self.locks.private if self.locks else ()))
            with _folder(self, path) as descriptor:
                return work(OpenFolder.of(self.shown(path), descriptor, excluded))

        return await self._in_thread(run)

    async def make(self, path: str) -> bool:
        """Create a folder and its missing parents, accessible to the owner only. Return whether it was created.

        Raises:
            FileTaken: if a file with this name exists.
            FileRefused: if a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        def work() -> bool:
            with _parent(self, path, create=True) as (folder, name), translating(self.shown(path)):
                if (found := _mode_of(folder, name)) is not None and stat.S_ISDIR(found):
                    return False
                if self.recorded is None:
                    os.mkdir(name, mode=0o700, dir_fd=folder)
                else:
                    made = create_folder(folder, name)
                    try:
                        self.recorded.replace(len(parts_of(path)), self.shown(path), made)
                    finally:
                        os.close(made)
                settle(folder, self.shown(path))
                return True

        return await self._in_thread(work)

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        """Remove a regular file.

        Args:
            path: the file.
            expected: the SHA-256 that it must have.

        Raises:
            FileMissing: if it does not exist.
            FileChanged: if its digest differs from ``expected``.
            FileRefused: if it is not a regular file, or a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        def work() -> None:
            shown = self.shown(path)
            with _parent(self, path) as (folder, name), translating(shown), _locked(self, folder):
                check_expected(folder, name, shown, expected)
                ordinary(folder, name, shown)
                os.unlink(name, dir_fd=folder)
                settle(folder, self.shown(path))

        await self._in_thread(work)

    async def remove_folder(self, path: str) -> None:
        """Remove an empty folder.

        Raises:
            FileMissing: if it does not exist.
            FileRefused: if it is not empty, is not a folder, or a folder in the path is a link or a file.
            FileFailed: if a system call fails.
        """

        def work() -> None:
            with _parent(self, path) as (folder, name), translating(self.shown(path)):
                if self.recorded is not None:
                    with opened_folder(folder, name) as found:
                        self.recorded.check(len(parts_of(path)), self.shown(path), self.shown(path), found)
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
        """Rename a regular file within this folder, or move it to another one on the same file system.

        Args:
            path: the file.
            target: its new path. Missing parent folders are created.
            into: the folder of ``target``; this one by default.
            overwrite: whether a regular file at ``target`` may be replaced.
            expected: the SHA-256 that the moved file must have.

        Raises:
            FileMissing: if the file does not exist.
            FileTaken: if ``target`` exists and must not be replaced.
            FileChanged: if the digest differs from ``expected``.
            FileRefused: if either path is not a regular file, a folder in a path is a link or a file, or ``target`` is
                on another file system.
            FileFailed: if a system call fails.
        """
        other = into or self
        shown, shown_target = self.shown(path), other.shown(target)

        def work() -> None:
            with (
                _parent(self, path) as (folder, name),
                _parent(other, target, create=True) as (target_folder, target_name),
                translating(shown_target),
                _locked(self, folder, target_folder),
                contextlib.ExitStack() as held,
            ):
                ordinary(folder, name, shown)
                source = None
                if expected is not None:
                    source, _ = held.enter_context(opened(folder, name, shown))
                    if digest_of(source) != expected:
                        raise FileChanged(shown)
                rename(folder, name, target_folder, target_name, shown_target, overwrite=overwrite, source=source)
                settle(folder, self.shown(path))
                settle(target_folder, shown_target)

        await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self.limiter)

    @asynccontextmanager
    async def _kept(self, blocking: contextlib.AbstractContextManager[T]) -> AsyncIterator[T]:
        """Enter and exit a blocking context manager in a thread."""
        value = await self._in_thread(blocking.__enter__)
        try:
            yield value
        finally:
            with CancelScope(shield=True):
                await self._in_thread(lambda: blocking.__exit__(None, None, None))


def _mode_of(folder: int, name: str) -> int | None:
    """Return the mode of what is at a name, or ``None`` if nothing is."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _locked(where: ConfinedFolder, *folders: int) -> contextlib.AbstractContextManager[None]:
    return where.locks.held(*folders) if where.locks else contextlib.nullcontext()


@contextmanager
def _folder(where: ConfinedFolder, path: str, *, create: bool = False, seen: list[str] | None = None) -> Iterator[int]:
    with _entered(where, parts_of(path), (), create=create, seen=seen) as folder:
        yield folder


@contextmanager
def _parent(
    where: ConfinedFolder, path: str, *, create: bool = False, seen: list[str] | None = None
) -> Iterator[tuple[int, str]]:
    """Open the parent folder of a path. Yields its descriptor and the last component."""
    parts = parts_of(path)
    if not parts:
        raise FileRefused(where.shown(path), "it is the folder itself")
    with _entered(where, parts[:-1], parts[-1:], create=create, seen=seen) as folder:
        yield folder, parts[-1]


def _entered(
    where: ConfinedFolder, parts: Sequence[str], rest: Sequence[str], *, create: bool, seen: list[str] | None
) -> contextlib.AbstractContextManager[int]:
    def shown(depth: int) -> str:
        return where.shown("/".join((*parts, *rest)[:depth]) or ".")

    return entered(
        where.root,
        parts,
        shown,
        create=create,
        excluded=(*where.excluded, *(where.locks.private if where.locks else ())),
        recorded=where.recorded,
        seen=seen,
    )


@contextmanager
def _opened(where: ConfinedFolder, path: str) -> Iterator[tuple[int, os.stat_result]]:
    with _parent(where, path) as (folder, name):
        if where.recorded is not None:
            with translating(where.shown(path)):
                check_kind(folder, name, where.shown(path), where.shown(path), stat.S_ISREG)
        with opened(folder, name, where.shown(path)) as found:
            yield found


def _read_at_most(descriptor: int, left: int) -> bytes:
    pieces = []
    while left and (piece := os.read(descriptor, min(PIECE, left))):
        from_thread.check_cancelled()
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
