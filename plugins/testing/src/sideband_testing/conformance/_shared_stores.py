"""The conformance class of stores that hosts with different homes share."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import ClassVar

import anyio
from sideband.store import SharedStore, Store

from ._stores import StoreConformance

_HOST_LOCK, _SESSION_LOCK = "host/6b0bafc8ee8b44", "session/ä \U0001f600"


class SharedStoreConformance(StoreConformance):
    """The tests of a store with locks, a ``sideband.store.SharedStore``, beside those of all stores.

    Attributes:
        lost_seconds: within how many seconds the locks of a killed process are free.

    Example:
        >>> class TestPostgres(SharedStoreConformance):
        ...     plugin = "store.postgres"
        ...     config = {"address": "postgresql://postgres@127.0.0.1/test", "schema": "{store}"}
    """

    lost_seconds: ClassVar[float] = 30.0

    def test_lock_has_one_holder(self) -> None:
        """Check that a held lock is refused, also to its holder, and that no other store can release it."""

        async def check(store: Store) -> None:
            one = self._shared(store)
            async with self._open(self._current) as opened:
                other = self._shared(opened)
                for name in (_HOST_LOCK, _SESSION_LOCK):
                    self._is("`try_lock` of a free lock", await one.try_lock(name), True)
                    self._is("`try_lock` of a lock that this store holds", await one.try_lock(name), False)
                    self._is("`try_lock` of a lock that another store holds", await other.try_lock(name), False)
                    await other.unlock(name)
                    self._is("`try_lock` after another store has unlocked it", await other.try_lock(name), False)
                    await one.unlock(name)
                    self._is("`try_lock` of a released lock", await other.try_lock(name), True)

        self._with_store(check)

    def test_closing_releases_locks(self) -> None:
        """Check that the locks of a store are free as soon as it is closed."""

        async def check(store: Store) -> None:
            async with self._open(self._current) as opened:
                self._is("`try_lock` of a free lock", await self._shared(opened).try_lock("one"), True)
            self._is("`try_lock` of the lock of a closed store", await self._shared(store).try_lock("one"), True)

        self._with_store(check)

    def test_of_many_at_the_same_time_one_gets_the_lock(self) -> None:
        """Check that tasks and stores that want the same lock at the same moment do not both get it."""

        async def check(store: Store) -> None:
            async with self._open(self._current) as opened:
                both = [self._shared(store), self._shared(opened)]
                for number in range(5):
                    taken: list[SharedStore] = []

                    async def take(one: SharedStore) -> None:
                        if await one.try_lock(f"lock {number}"):  # noqa: B023  it is called in this iteration
                            taken.append(one)  # noqa: B023  as above

                    async with anyio.create_task_group() as tasks:
                        for one in both * 3:
                            tasks.start_soon(take, one)
                    self._is("the number of tasks that got the lock", len(taken), 1)

        self._with_store(check)

    def test_killed_process_loses_its_locks(self) -> None:
        """Check that another store gets the lock of a process that was killed, and not before."""
        folder = self.new_folder("store")
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                self.run(lambda: self._hold(folder, writing))
            finally:
                os._exit(1)
        os.close(writing)

        async def check(store: Store) -> None:
            shared = self._shared(store)
            self._is("`try_lock` while the process lives", await shared.try_lock("one"), False)
            os.kill(child, signal.SIGKILL)
            await anyio.to_thread.run_sync(os.waitpid, child, 0)
            with anyio.move_on_after(self.lost_seconds):
                while not await shared.try_lock("one"):  # noqa: ASYNC110  a store does not tell when a lock is free
                    await anyio.sleep(0.05)
                await shared.put("after", {})
                return
            self._wrong(f"the lock of a killed process is free after {self.lost_seconds:g} s", "it is still held")

        with os.fdopen(reading, "rb") as ready:
            self._is("what the process tells when it holds the lock", ready.read(2), b"ok")
            self._with_store(check, folder=folder, backends=1)

    async def _hold(self, folder: Path, ready: int) -> None:
        async with self._open(folder) as store:
            held = await self._shared(store).try_lock("one")
            os.write(ready, b"ok" if held else b"no")
            await anyio.sleep(sys.maxsize)

    def _shared(self, store: Store) -> SharedStore:
        if not isinstance(store, SharedStore):
            self._wrong("`open` yields a `SharedStore`", f"a {type(store).__name__} has no locks")
        return store  # type: ignore[return-value]  # checked above
