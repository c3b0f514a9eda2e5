"""The state of the plugin: threads, and locks on the files that are being changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread
from attrs import define, evolve, field
from sideband.ops import OpContext
from sideband_confined_files import REPLACED_FOLDERS, ConfinedFolder, FileRefused, FolderLocks, RecordedFolders

from ._config import Config
from ._targets import FileTarget, Mode, check_canonical, locate

_FILES = "files"


@define
class Files:
    """Resolves paths for ops, and serializes changes of the same file.

    A trust domain gets at most half of the threads, so one skill cannot starve the others.
    """

    config: Config
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)
    _changing: WeakValueDictionary[str, anyio.Lock] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    def share(self, ctx: OpContext) -> anyio.CapacityLimiter:
        """Return the limiter that an op must hold while it accesses files."""
        return self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))

    async def find(
        self,
        ctx: OpContext,
        text: str,
        mode: Mode,
        *,
        folder: bool = False,
        hidden: bool = False,
        folders: Sequence[str] | None = None,
    ) -> FileTarget:
        """Resolve a path, unless its folders were recorded, and check the grant.

        Raises:
            FileRefused: if the path leaves its folder, or belongs to the host, or a skill names recorded folders.
            OpDenied: if it is not granted.
        """
        if folders is not None and ctx.origin.skill is not None:
            # They state what the host itself has recorded, and replace it if a folder is created again.
            raise FileRefused(text, "a skill cannot name recorded folders", hint="leave out `folders`: undo sets it")

        def work() -> FileTarget:
            found = locate(text, folder=folder, folders=folders)
            check_canonical(found, ctx.home)
            return found

        target = await to_thread.run_sync(work, limiter=self._limiter)
        # the grant was checked against the path at that time; a link may have changed since
        ctx.require(target.scope(mode, hidden=hidden))
        return target

    def folder(self, ctx: OpContext, target: FileTarget) -> ConfinedFolder:
        """Return the confined folder that contains the target, restricted to the recorded folders, if any."""
        locks = FolderLocks(ctx.home)
        if target.system:
            folder = ConfinedFolder(Path("/"), excluded=(ctx.home,), limiter=self._limiter, locks=locks)
        else:
            folder = ConfinedFolder(ctx.home / _FILES, limiter=self._limiter, locks=locks)
        if target.folders is None:
            return folder
        return folder.through(RecordedFolders(target.folders, ctx.home / REPLACED_FOLDERS))

    async def pin(
        self, ctx: OpContext, target: FileTarget, *, itself: bool = False, create: bool = False
    ) -> FileTarget:
        """Return the target, restricted to the folders that are on its path now.

        Args:
            ctx: the op's context.
            target: the target.
            itself: whether the target is a folder, which is included.
            create: whether to create missing folders.
        """
        folders = await self.folder(ctx, target).folders(target.path, itself=itself, create=create)
        return evolve(target, folders=folders)

    @asynccontextmanager
    async def locked(self, *targets: FileTarget) -> AsyncIterator[None]:
        """Lock these files within this host. Locks are acquired in sorted order, which prevents deadlocks."""
        async with AsyncExitStack() as held:
            for name in sorted({target.name for target in targets}):
                await held.enter_async_context(self._changing.setdefault(name, anyio.Lock()))
            yield
