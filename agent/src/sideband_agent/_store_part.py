"""A part of a store: everything in it has the same beginning of its key, which those who use the part do not see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen
from sideband.store import Document, Record, Store, Transaction


@frozen
class StorePart:
    """A ``sideband.store.Store`` within another one.

    It has no locks that machines share: its user holds the lock of what it belongs to.

    Args:
        whole: the other store.
        beginning: the beginning of the keys and streams of this part.
    """

    whole: Store
    beginning: str

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self.whole.get(self.beginning + key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:
        """Write ``value`` and return its new version."""
        return await self.whole.put(self.beginning + key, value, version=version, durable=durable)

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:
        """Delete the document. Return whether it existed."""
        return await self.whole.delete(self.beginning + key, version=version, durable=durable)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted."""
        return [key.removeprefix(self.beginning) for key in await self.whole.keys(self.beginning + prefix)]

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:
        """Append records to a stream and return the position of the first one."""
        return await self.whole.append(self.beginning + stream, values, durable=durable)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream from ``start``, in order."""
        return await self.whole.read(self.beginning + stream, start=start, limit=limit)

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:
        """Delete a stream. Return whether it existed."""
        return await self.whole.delete_stream(self.beginning + stream, durable=durable)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """Run the body as a transaction of the whole store."""
        async with self.whole.transaction(durable=durable) as transaction:
            yield _TransactionPart(transaction, self.beginning)

    async def sync(self) -> None:
        """Sync the whole store."""
        await self.whole.sync()

    def unsynced(self) -> Callable[[], None] | None:
        """Return the job that syncs the whole store."""
        return self.whole.unsynced()


@frozen
class _TransactionPart:
    """A transaction of a part."""

    whole: Transaction
    beginning: str

    async def get(self, key: str) -> Document | None:
        return await self.whole.get(self.beginning + key)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        return await self.whole.put(self.beginning + key, value, version=version)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        return await self.whole.delete(self.beginning + key, version=version)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        return [key.removeprefix(self.beginning) for key in await self.whole.keys(self.beginning + prefix)]

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        return await self.whole.append(self.beginning + stream, values)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        return await self.whole.read(self.beginning + stream, start=start, limit=limit)

    async def delete_stream(self, stream: str) -> bool:
        return await self.whole.delete_stream(self.beginning + stream)
