"""A store that hosts with different homes share: an SQLite database and lock files, in a folder beside the homes."""

from contextlib import ExitStack, asynccontextmanager
from urllib.parse import quote

from sideband.state import FileLock
from sideband.store import Store, StoreSpec
from sideband_store_sqlite import open_sqlite

OPERATIONS = [name for name in dir(Store) if not name.startswith("_")]


class SharedSqlite:
    def __init__(self, store, folder):
        self._folder, self._held = folder, {}
        for name in OPERATIONS:
            setattr(self, name, getattr(store, name))

    async def try_lock(self, name):
        file = FileLock(self._folder / quote(name, safe=""))
        if not file.try_acquire():
            file.close()
            return False
        self._held[name] = file
        return True

    async def unlock(self, name):
        self._held.pop(name).close()

    def close(self):
        for file in self._held.values():
            file.close()


@asynccontextmanager
async def open_shared(folder):
    """Open the store of a host with the home ``folder.parent``."""
    shared = folder.parent.parent / "shared"
    shared.mkdir(exist_ok=True)
    with ExitStack() as stack:
        async with open_sqlite(shared) as sqlite:
            store = SharedSqlite(sqlite, shared)
            stack.callback(store.close)
            yield store


def sideband_stores():
    return [StoreSpec(name="shared", open=open_shared)]
