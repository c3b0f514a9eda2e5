"""Shared stores with one fault each: the store `sqlite` with locks that are files in its folder."""

import os
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import anyio
import sideband_store_sqlite.plugin
from sideband import Plugin
from sideband.state import FileLock
from sideband.store import Store, StoreSpec
from sideband_testing.conformance import SharedStoreConformance

(SQLITE,) = sideband_store_sqlite.plugin.sideband_stores()


class Good:
    """A store without a fault."""

    def __init__(self, store, folder):
        self.folder, self.held = folder, {}
        for name in dir(Store):
            if not name.startswith("_"):
                setattr(self, name, getattr(store, name))

    async def try_lock(self, name):
        file = FileLock(self.folder / quote(name, safe=""))
        if not file.try_acquire():
            file.close()
            return False
        self.held[name] = file
        return True

    async def unlock(self, name):
        if name in self.held:
            self.held.pop(name).close()

    def close(self):
        for file in self.held.values():
            file.close()


def store(cls):
    @asynccontextmanager
    async def open_store(folder):
        async with SQLITE.open(folder) as found:
            with ExitStack() as stack:
                opened = cls(found, folder)
                stack.callback(opened.close)
                yield opened

    value = SimpleNamespace(sideband_stores=lambda: [StoreSpec("faulty", open_store)], backends=("asyncio",))
    return Plugin("store", "faulty", value)


class Locked(SharedStoreConformance):
    lost_seconds = 0.5


class TestGood(Locked):
    fault = ""
    plugin = store(Good)


class AnyoneUnlocks(Good):
    async def unlock(self, name):
        await super().unlock(name)
        (self.folder / quote(name, safe="")).unlink(missing_ok=True)


class TestAnyoneUnlocks(Locked):
    """A store releases the lock of another one."""

    fault = "test_lock_has_one_holder"
    plugin = store(AnyoneUnlocks)


class KeepsLocksWhenClosed(Good):
    kept = []

    def close(self):
        self.kept.extend(self.held.values())


class TestKeepsLocksWhenClosed(Locked):
    """The locks of a closed store are held until the process ends."""

    fault = "test_closing_releases_locks"
    plugin = store(KeepsLocksWhenClosed)


class Marks(Good):
    """The locks are files with the id of a process, which are written a moment after the check."""

    is_alive = staticmethod(lambda pid: Path(f"/proc/{pid}").exists())

    async def try_lock(self, name):
        path = self.folder / quote(name, safe="")
        if path.exists() and self.is_alive(path.read_text()):
            return False
        await anyio.lowlevel.checkpoint()
        path.write_text(str(os.getpid()))
        self.held[name] = path
        return True

    async def unlock(self, name):
        if name in self.held:
            self.held.pop(name).unlink()

    def close(self):
        for path in self.held.values():
            path.unlink(missing_ok=True)


class TestMarks(Locked):
    """Two tasks that want a lock at the same moment both get it."""

    fault = "test_of_many_at_the_same_time_one_gets_the_lock"
    plugin = store(Marks)


class MarksAreForever(Marks):
    is_alive = staticmethod(lambda pid: True)

    async def try_lock(self, name):
        async with self.one:
            return await super().try_lock(name)

    one = anyio.Lock()


class TestMarksAreForever(Locked):
    """The locks of a killed process are never free."""

    fault = "test_killed_process_loses_its_locks"
    plugin = store(MarksAreForever)
