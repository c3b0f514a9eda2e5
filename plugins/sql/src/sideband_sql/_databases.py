"""The state of the plugin: allocates threads to sessions and serializes writers to a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

import anyio
from anyio import CancelScope, from_thread, to_thread
from attrs import define, field
from sideband.ops import OpContext

from ._config import Config
from ._cursors import Cursors
from ._drivers import driver_for
from ._errors import SqlDenied
from ._paths import DatabaseTarget, check_recorded, identities, locate, pinned_folder
from ._protocols import DatabaseSession
from ._scope import SqlScope

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_SECONDS_BETWEEN_INTERRUPTS = 0.02


@define
class Databases:
    """Runs blocking database work in a limited number of threads, with one writer at a time per database.

    A writer that waits for another writer of this host waits here, in order and cancellable, without using a thread.
    A trust domain gets at most half of the threads, so one skill cannot starve the others.
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
        """Run ``work`` with a read-only session."""
        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=False)
            return await self._once(opening, work)

    async def write(
        self,
        ctx: OpContext,
        db: str,
        attach: Mapping[str, str],
        work: Callable[[DatabaseSession], T],
        *,
        recorded: Sequence[str] | None = None,
    ) -> T:
        """Run ``work`` in one transaction, which is committed or rolled back as a whole.

        Before the commit, the inverse is stored and the effect is recorded in the same transaction. If ``recorded``
        is given, the database must exist and be the recorded one.
        """

        def committed(session: DatabaseSession) -> T:
            if recorded is not None:
                check_recorded(opening.target, db, recorded, session.identities())
            with session.transaction():
                session.watch_changes()
                result = work(session)
                _store_inverse(ctx, opening.target.name, session)
                session.mark(ctx.effect)
                return result

        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=True, create=recorded is None)
            async with self._writers.setdefault(opening.target.file, anyio.Lock()):
                return await self._once(opening, committed)

    async def rehearse(
        self, ctx: OpContext, db: str, attach: Mapping[str, str], work: Callable[[DatabaseSession], T]
    ) -> T:
        """Run ``work`` in a transaction and roll it back. Does not create a database."""

        def rolled_back(session: DatabaseSession) -> T:
            with session.transaction(keep=False):
                return work(session)

        async with self._share(ctx):
            opening = await self._opening(ctx, db, attach, changes=True, create=False)
            async with self._writers.setdefault(opening.target.file, anyio.Lock()):
                return await self._once(opening, rolled_back)

    async def check_recorded(self, ctx: OpContext, db: str, recorded: Sequence[str]) -> None:
        """Check that a database is the recorded one, without opening it.

        Raises:
            SqlReplaced: if it is another one.
            SqlError: if it is not accessible.
        """
        target = await self._locate(ctx, db, "write")

        def work() -> None:
            with pinned_folder(target) as (folder, _):
                check_recorded(target, db, recorded, identities(folder, target))

        await to_thread.run_sync(work, limiter=self._limiter)

    async def is_marked(self, ctx: OpContext, db: str, effect: str) -> bool | None:
        """Return whether the change of the effect was committed, or ``None`` if it is unknown."""

        def work(session: DatabaseSession) -> bool | None:
            return session.is_marked(effect)

        async with self._share(ctx):
            # write access includes knowing what was written
            target = await self._locate(ctx, db, "write")
            return await self._once(_Opening(target, {}, self.config, changes=False), work)

    async def open(self, ctx: OpContext, db: str, attach: Mapping[str, str]) -> DatabaseSession:
        """Open a read-only session. The caller must close it."""
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
        """Close an open session, even during cancellation."""
        with CancelScope(shield=True):
            await to_thread.run_sync(session.close, limiter=self._limiter)

    async def end_cursor(self, cursor_id: str) -> None:
        """Close a cursor and interrupt a running fetch. Ignore a cursor that is already closed."""
        cursor = self.cursors.remove(cursor_id)
        if cursor is None:
            return
        with CancelScope(shield=True):
            cursor.session.stop()
            async with cursor.lock:
                await self.close(cursor.session)

    async def end_all_cursors(self) -> None:
        """Close all open cursors."""
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
                    f"attaching `{other.name}` to `{target.name}`",
                    hint="attach only databases of the same engine",
                )
        return _Opening(target, attached, self.config, changes)

    async def _locate(self, ctx: OpContext, db: str, mode: str, *, create: bool = False) -> DatabaseTarget:
        def find() -> DatabaseTarget:
            return locate(db, ctx.home, create=create)

        target = await to_thread.run_sync(find, limiter=self._limiter)
        # the grant was checked against the path at that time; a link may have changed since
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
            except Exception as error:  # noqa: BLE001  raised below: the task group would wrap it in a group
                failures.append(error)
            finally:
                ended.set()
        if failures:
            raise failures[0]
        return result[0]

    async def _stop_in_time(self, ended: anyio.Event, session: Callable[[], DatabaseSession | None]) -> None:
        """Stop the session on timeout or cancellation, repeating until the work has ended."""
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
    """A database to open, already located and authorized."""

    target: DatabaseTarget
    attached: Mapping[str, DatabaseTarget]
    config: Config
    changes: bool

    def __call__(self) -> DatabaseSession:
        return driver_for(self.target, self.config).open(self.target, self.attached, self.config, changes=self.changes)


def _store_inverse(ctx: OpContext, name: str, session: DatabaseSession) -> None:
    """Store the inverse of a change before it is committed. Called in a thread."""
    inverse = session.inverse()
    note: dict[str, str | int | list[str]] = {}
    if inverse.changes:
        note["undo"] = run_in_loop(ctx.blobs.put, inverse.changes).sha256
        note["rows"] = inverse.rows
        note["database"], note["recorded"] = name, session.identities()
    if inverse.remains:
        note["remains"] = list(inverse.remains)
    if note:
        run_in_loop(ctx.note, note)


def run_in_loop(function: Callable[[*Arguments], Awaitable[T]], *args: *Arguments) -> T:
    """Run an async function in the event loop, from a thread, unless the work in this thread was cancelled.

    It is not cancelled meanwhile. On asyncio, a function that begins after the cancellation and is not shielded would
    wait for it forever, because anyio delivers it only to tasks that are there already.
    """
    from_thread.check_cancelled()
    return from_thread.run(_run_shielded, function, *args)


async def _run_shielded(function: Callable[[*Arguments], Awaitable[T]], *args: *Arguments) -> T:
    with CancelScope(shield=True):
        return await function(*args)
    raise AssertionError("a shielded scope does not end early")
