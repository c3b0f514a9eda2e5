"""The state of the plugin: who may use a thread, and who writes to which database now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import CancelScope, from_thread, to_thread
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config
from ._cursors import Cursors
from ._drivers import driver_for
from ._errors import SqlDenied
from ._paths import DatabaseTarget, locate
from ._protocols import DatabaseSession, Inverse
from ._scope import SqlScope

T = TypeVar("T")

_SECONDS_BETWEEN_INTERRUPTS = 0.02


@define
class Databases:
    """Runs blocking work on databases in threads of its own number, writers to one database one after the other.

    A writer that waits for another one of this host waits here, cancellable and in order, not with a thread. One trust
    domain gets at most half of the threads, so that no skill can keep all others waiting.
    """

    config: Config
    cursors: Cursors = field(init=False)
    _limiter: anyio.CapacityLimiter = field(init=False)
    _domains: WeakValueDictionary[str, anyio.CapacityLimiter] = field(init=False, factory=WeakValueDictionary)
    _writers: WeakValueDictionary[Path, anyio.Lock] = field(init=False, factory=WeakValueDictionary)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)
        self.cursors = Cursors(self.config.cursors)

    async def read(self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[DatabaseSession], T]) -> T:
        """Run ``work`` with a session that can't change anything."""
        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=False)
            return await self._once(opening, work)

    async def write(
        self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[DatabaseSession], T]
    ) -> T:
        """Run ``work`` with a session in one transaction: all of it is kept, or nothing.

        What takes it back is kept before it is committed, and that it was committed is noted with it.
        """

        def all_or_nothing(session: DatabaseSession) -> T:
            with session.transaction():
                session.watch_changes()
                result = work(session)
                _keep(ctx, session.inverse())
                session.mark(ctx.effect)
                return result

        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=True)
            async with self._writers.setdefault(opening.target.file, anyio.Lock()):
                return await self._once(opening, all_or_nothing)

    async def rehearse(
        self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[DatabaseSession], T]
    ) -> T:
        """Run ``work`` with a session in one transaction of which nothing is kept. No database is created."""

        def nothing(session: DatabaseSession) -> T:
            with session.transaction(keep=False):
                return work(session)

        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=True, create=False)
            async with self._writers.setdefault(opening.target.file, anyio.Lock()):
                return await self._once(opening, nothing)

    async def is_marked(self, ctx: OpContext, db: str, effect: str) -> bool | None:
        """Whether the change that is the effect was committed; ``None`` if nobody knows."""

        def work(session: DatabaseSession) -> bool | None:
            return session.is_marked(effect)

        async with self._share(ctx):
            # who may change may know what was changed
            target = await self._locate(ctx, db, "write")
            return await self._once(_Opening(target, {}, self.config, changes=False), work)

    async def open(self, ctx: OpContext, db: str, attach: Mapping[str, str]) -> DatabaseSession:
        """A session that can't change anything, and stays open until it is closed."""
        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=False)
            return await to_thread.run_sync(opening, limiter=self._limiter)

    async def use(self, ctx: OpContext, session: DatabaseSession, work: Callable[[], T]) -> T:
        """Run ``work`` with an open session."""

        def run() -> T:
            with session.running():
                return work()

        async with self._share(ctx):
            return await self._watched(run, lambda: session)

    async def close(self, session: DatabaseSession) -> None:
        """Close an open session, whatever else ends now."""
        with CancelScope(shield=True):
            await to_thread.run_sync(session.close, limiter=self._limiter)

    async def end_cursor(self, cursor_id: str) -> None:
        """Close a cursor, and stop what still reads from it. One that has ended already is left alone."""
        cursor = self.cursors.remove(cursor_id)
        if cursor is None:
            return
        with CancelScope(shield=True):
            cursor.session.stop()
            async with cursor.lock:
                await self.close(cursor.session)

    async def end_all_cursors(self) -> None:
        """Close all cursors that are open."""
        for cursor_id in self.cursors.ids():
            await self.end_cursor(cursor_id)

    def _share(self, ctx: OpContext) -> anyio.CapacityLimiter:
        return self._domains.setdefault(ctx.domain, anyio.CapacityLimiter(max(1, self.config.threads // 2)))

    async def _opening(
        self, ctx: OpContext, db: str, attach: Mapping[str, str], *, changes: bool, create: bool | None = None
    ) -> _Opening:
        mode = "write" if changes else "read"
        target = await self._locate(ctx, db, mode, create=changes if create is None else create)
        attached = {alias: await self._locate(ctx, other, "read") for alias, other in attach.items()}
        for other in attached.values():
            if other.engine != target.engine:
                raise SqlDenied(
                    f"attaching `{other.name}` to `{target.name}`", hint="attached databases are of the same engine"
                )
        return _Opening(target, attached, self.config, changes)

    async def _locate(self, ctx: OpContext, db: str, mode: str, *, create: bool = False) -> DatabaseTarget:
        def find() -> DatabaseTarget:
            return locate(db, ctx.home, create=create)

        target = await to_thread.run_sync(find, limiter=self._limiter)
        # the gate compared the path as it was then; a link may have changed
        ctx.require(SqlScope(path=target.name, mode=mode))
        return target

    async def _once(self, opening: _Opening, work: Callable[[DatabaseSession], T]) -> T:
        opened: list[DatabaseSession] = []

        def run() -> T:
            session = opening()
            try:
                opened.append(session)
                with session.running():
                    return work(session)
            finally:
                opened.clear()
                session.close()

        return await self._watched(run, lambda: opened[0] if opened else None)

    async def _watched(self, work: Callable[[], T], session: Callable[[], DatabaseSession | None]) -> T:
        ended = anyio.Event()
        result: list[T] = []
        failures: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_in_time, ended, session)
            try:
                result.append(await to_thread.run_sync(work, limiter=self._limiter))
            except Exception as error:  # noqa: BLE001  raised below: the group would put it into a group of its own
                failures.append(error)
            finally:
                ended.set()
        if failures:
            raise failures[0]
        return result[0]

    async def _stop_in_time(self, ended: anyio.Event, session: Callable[[], DatabaseSession | None]) -> None:
        """Stop the session when the time is over or the dispatch is cancelled, again and again until it has ended."""
        try:
            with anyio.move_on_after(self.config.max_seconds + self.config.busy_seconds):
                await ended.wait()
        finally:
            with CancelScope(shield=True):
                while not ended.is_set():
                    if (running := session()) is not None:
                        running.stop()
                    with anyio.move_on_after(_SECONDS_BETWEEN_INTERRUPTS):
                        await ended.wait()


@define
class _Opening:
    """What is to be opened, found and allowed."""

    target: DatabaseTarget
    attached: Mapping[str, DatabaseTarget]
    config: Config
    changes: bool

    def __call__(self) -> DatabaseSession:
        return driver_for(self.target, self.config).open(self.target, self.attached, self.config, changes=self.changes)


def _keep(ctx: OpContext, inverse: Inverse) -> None:
    """Note what takes a change back, before it is made. Called in a thread."""
    note: dict[str, str | int | list[str]] = {}
    if inverse.changes:
        note["undo"] = from_thread.run(ctx.blobs.put, inverse.changes).sha256
        note["rows"] = inverse.rows
    if inverse.remains:
        note["remains"] = list(inverse.remains)
    if note:
        from_thread.run(ctx.note, note)
