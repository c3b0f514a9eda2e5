"""The state of the plugin: who may use a thread, and who changes which file now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread
from attrs import define, field
from sideband.ops import OpContext
from sideband_confined_files import ConfinedFolder

from ._config import Config
from ._targets import FileTarget, Mode, check_not_the_hosts, locate

_FILES = "files"


@define
class Files:
    """Finds files for ops, and lets those that change one file do so one after the other.

    One trust domain gets at most half of the threads, so that no skill can keep all others waiting.
    """

    config: Config
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)
    _changing: WeakValueDictionary[str, anyio.Lock] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    def share(self, ctx: OpContext) -> anyio.CapacityLimiter:
        """What an op holds while it works on files."""
        return self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))

    async def find(
        self, ctx: OpContext, text: str, mode: Mode, *, folder: bool = False, hidden: bool = False
    ) -> FileTarget:
        """What a path means now, and whether that is granted.

        Raises:
            FileRefused: it leads elsewhere, or belongs to the host.
            OpDenied: the grant does not have it.
        """

        def work() -> FileTarget:
            found = locate(text, folder=folder)
            check_not_the_hosts(found, ctx.home)
            return found

        target = await to_thread.run_sync(work, limiter=self._limiter)
        # the gate compared the path as it was then; a link may have changed
        ctx.require(target.scope(mode, hidden=hidden))
        return target

    def folder(self, ctx: OpContext, target: FileTarget) -> ConfinedFolder:
        """The folder that a target's path is below."""
        if target.system:
            return ConfinedFolder(Path("/"), excluded=(ctx.home,), limiter=self._limiter)
        return ConfinedFolder(ctx.home / _FILES, limiter=self._limiter)

    @asynccontextmanager
    async def alone(self, *targets: FileTarget) -> AsyncIterator[None]:
        """Be the only op of this host that changes these files. Several are taken in one order, the same for all."""
        async with AsyncExitStack() as held:
            for name in sorted({target.name for target in targets}):
                await held.enter_async_context(self._changing.setdefault(name, anyio.Lock()))
            yield
