"""The state of the plugin: who may use a thread, and who writes to which database now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config
from ._connection import Session, open_session
from ._models import SqlScope
from ._paths import Target, locate

__all__ = ["Databases"]

T = TypeVar("T")


@define
class Databases:
    """Runs blocking work on databases in threads of its own number, writers to one database one after the other.

    A writer that waits for another one of this host waits here, cancellable and in order, not with a thread. One trust
    domain gets at most half of the threads, so that no skill can keep all others waiting.
    """

    config: Config
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)
    _writers: WeakValueDictionary[Path, anyio.Lock] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    async def read(self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[Session], T]) -> T:
        """Run ``work`` with a session that can't change anything."""
        async with self._share(ctx):
            target = await self._locate(ctx, db, "read")
            attached = await self._attached(ctx, attach)
            return await self._run(target, attached, work, changes=False)

    async def write(self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[Session], T]) -> T:
        """Run ``work`` with a session in one transaction: all of it is kept, or nothing."""

        def all_or_nothing(session: Session) -> T:
            with session.transaction():
                return work(session)

        async with self._share(ctx):
            target = await self._locate(ctx, db, "write")
            attached = await self._attached(ctx, attach)
            async with self._writers.setdefault(target.file, anyio.Lock()):
                return await self._run(target, attached, all_or_nothing, changes=True)

    def _share(self, ctx: OpContext) -> anyio.CapacityLimiter:
        return self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))

    async def _attached(self, ctx: OpContext, attach: Mapping[str, str]) -> dict[str, Target]:
        return {alias: await self._locate(ctx, db, "read") for alias, db in attach.items()}

    async def _locate(self, ctx: OpContext, db: str, mode: str) -> Target:
        def find() -> Target:
            return locate(db, ctx.home, create=mode == "write")

        target = await to_thread.run_sync(find, limiter=self._limiter)
        # the gate compared the path as it was then; a link may have changed
        ctx.require(SqlScope(path=target.name, mode=mode))
        return target

    async def _run(
        self, target: Target, attached: Mapping[str, Target], work: Callable[[Session], T], *, changes: bool
    ) -> T:
        def run() -> T:
            with open_session(target, attached, self.config, changes=changes) as session:
                return work(session)

        return await to_thread.run_sync(run, limiter=self._limiter)
