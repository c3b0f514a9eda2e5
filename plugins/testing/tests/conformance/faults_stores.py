"""Stores with one fault each: wrappers of the store `sqlite`."""

import os
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import sideband_store_sqlite.plugin
from sideband import Plugin, StoreError
from sideband.store import StoreSpec
from sideband_testing import StoreConformance

(SQLITE,) = sideband_store_sqlite.plugin.sideband_stores()


class Good:
    """Delegates everything."""

    def __init__(self, store):
        self.store = store

    async def get(self, key):
        return await self.store.get(key)

    async def put(self, key, value, *, version=None, durable=True):
        return await self.store.put(key, value, version=version, durable=durable)

    async def delete(self, key, *, version=None, durable=True):
        return await self.store.delete(key, version=version, durable=durable)

    async def keys(self, prefix=""):
        return await self.store.keys(prefix)

    async def append(self, stream, values, *, durable=True):
        return await self.store.append(stream, values, durable=durable)

    async def read(self, stream, *, start=0, limit=None):
        return await self.store.read(stream, start=start, limit=limit)

    async def delete_stream(self, stream, *, durable=True):
        return await self.store.delete_stream(stream, durable=durable)

    def transaction(self, *, durable=True):
        return self.store.transaction(durable=durable)

    async def sync(self):
        await self.store.sync()

    def unsynced(self):
        return self.store.unsynced()


def store(cls):
    @asynccontextmanager
    async def open_store(folder):
        async with SQLITE.open(folder) as opened:
            yield cls(opened)

    value = SimpleNamespace(sideband_stores=lambda: [StoreSpec("faulty", open_store)], backends=("asyncio",))
    return Plugin("store", "faulty", value)


class Base(StoreConformance):
    fault = ""


class TestGood(Base):
    plugin = store(Good)


class IgnoresVersionOfDelete(Good):
    async def delete(self, key, *, version=None, durable=True):
        return await self.store.delete(key, durable=durable)


class TestIgnoresVersions(Base):
    fault = "test_documents_have_versions"
    plugin = store(IgnoresVersionOfDelete)


class PrefixIsAPattern(Good):
    async def keys(self, prefix=""):
        return [key for key in await self.store.keys() if key.startswith(prefix.rstrip("*"))]


class TestPrefixIsAPattern(Base):
    fault = "test_keys_are_texts_of_any_characters"
    plugin = store(PrefixIsAPattern)


class Rounds(Good):
    async def put(self, key, value, *, version=None, durable=True):
        if isinstance(value, dict) and "f" in value:
            value = {**value, "f": round(value["f"])}
        return await self.store.put(key, value, version=version, durable=durable)


class TestRoundsNumbers(Base):
    fault = "test_values_round_trip"
    plugin = store(Rounds)


class ReadsTooMuch(Good):
    async def read(self, stream, *, start=0, limit=None):
        return await self.store.read(stream, start=start)


class TestIgnoresTheLimit(Base):
    fault = "test_streams_are_numbered_from_zero"
    plugin = store(ReadsTooMuch)


class Unordered(Good):
    """A transaction that is not rolled back when its body raises."""

    @asynccontextmanager
    async def transaction(self, *, durable=True):
        error = None
        async with self.store.transaction(durable=durable) as transaction:
            try:
                yield transaction
            except ZeroDivisionError as raised:
                error = raised
        if error is not None:
            raise error


class TestKeepsWhatFailed(Base):
    fault = "test_transactions_are_complete_or_have_no_effect"
    plugin = store(Unordered)


class LosesUpdates(Good):
    async def put(self, key, value, *, version=None, durable=True):
        if key == "counter" and version:
            await anyio.lowlevel.checkpoint()
            version = None
        return await self.store.put(key, value, version=version, durable=durable)


class TestLosesUpdates(Base):
    fault = "test_concurrent_writers_lose_nothing"
    plugin = store(LosesUpdates)


class Buffers(Good):
    """Writes what is not durable with the next durable write or ``sync`` only."""

    def __init__(self, store):
        super().__init__(store)
        self.buffer = []

    async def flush(self):
        while self.buffer:
            await self.store.append(*self.buffer.pop(0))

    async def append(self, stream, values, *, durable=True):
        if not durable:
            self.buffer.append((stream, values))
            return 0
        return await self.store.append(stream, values)

    async def sync(self):
        await self.flush()
        await self.store.sync()


class TestLosesWritesAtAKill(Base):
    fault = "test_writes_survive_a_kill"
    plugin = store(Buffers)


class LeaksWhenCancelled(Good):
    @asynccontextmanager
    async def transaction(self, *, durable=True):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        async with self.store.transaction(durable=durable) as transaction:
            yield transaction
        os.close(descriptor)


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = store(LeaksWhenCancelled)


class CannotSync(Good):
    async def sync(self):
        raise StoreError("not now")


class TestCannotSync(Base):
    fault = "test_sync_and_two_users_of_one_folder"
    plugin = store(CannotSync)
