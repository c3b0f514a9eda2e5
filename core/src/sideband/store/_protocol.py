"""The store protocol. A plugin implements it; the kernel keeps sessions and the head of the ledger in it.

Documents are JSON objects under a string key. Their version starts at 1 and grows by 1 with each write.
Streams are append-only sequences of JSON objects, numbered from 0.

A write is complete and visible to all users of the store when it returns, and survives the end of the process, also by
``kill -9``. What a power cut or a crash of the system may cost depends on its ``durable``:

- A durable write (the default) is on disk when it returns, and with it all writes that were complete when it began,
  also those that were not durable and those of other hosts.
- A write that is not durable may be lost until a later durable write, or ``sync``, has returned. A power cut never
  loses a write and keeps a later one: what remains is all writes up to some moment. Closing the store syncs it.

If a durable write or ``sync`` raises because it could not reach the disk, or is cancelled while it waits for it, the
write has been made and may be lost only at a power cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen


@frozen
class Document:
    """A stored object and its version.

    Attributes:
        value: the object.
        version: its version, which is 1 after the first write.
    """

    value: Mapping[str, Any]
    version: int


@frozen
class Record:
    """One object of a stream.

    Attributes:
        position: its position in the stream, counted from 0.
        value: the object.
    """

    position: int
    value: Mapping[str, Any]


class Transaction(Protocol):
    """The operations of a transaction.

    A store has the same methods, each of which runs in its own transaction and can be durable or not.
    """

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        """Write ``value`` and return its new version.

        Args:
            version: the expected current version. 0 means that the key must not exist; ``None`` skips the check.

        Raises:
            StoreConflict: if the document has a different version. Nothing was written.
        """

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete the document and return whether it existed. ``version`` is the same as for ``put``."""

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that start with ``prefix``, sorted."""

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        """Append all values to a stream atomically and return the position of the first."""

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream in order, from position ``start``."""

    async def delete_stream(self, stream: str) -> bool:
        """Delete a whole stream and return whether it existed."""


@runtime_checkable
class Store(Transaction, Protocol):
    """Storage for state. Several tasks and several hosts may use it concurrently.

    The description of the module says what ``durable`` promises.
    """

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:
        """Write a document, as in a transaction."""

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:
        """Delete a document, as in a transaction."""

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:
        """Append to a stream, as in a transaction."""

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:
        """Delete a stream, as in a transaction."""

    def transaction(self, *, durable: bool = True) -> AbstractAsyncContextManager[Transaction]:
        """Run the body as a transaction: roll back if it raises or is cancelled. Transactions cannot be nested.

        Args:
            durable: whether the whole transaction is on disk when the block ends.
        """

    async def sync(self) -> None:
        """Return when all writes that were complete at the call are on disk, also those of other hosts.

        Raises:
            StoreError: if they may not be on disk. Do not treat them as lost: they are still visible.
        """

    def unsynced(self) -> Callable[[], None] | None:
        """Return a job that does the work of ``sync`` in a thread, in which the kernel also syncs the ledger.

        Returns:
            The job, which raises as ``sync`` does; ``None`` if everything is on disk, or if only ``sync`` can do it.
        """


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that hosts with different homes share, for example on several machines. It also has their locks.

    A store with these methods is one. The ledgers of its hosts are separate, so the kernel keeps the claims on
    idempotency keys in the store, in documents that it writes with ``version``, and agents take the locks of sessions
    from it. The holder of a lock is an open store, in one process. Closing it releases its locks.

    A holder that dies loses its locks at once, or after a time that the store sets, also if its machine or its network
    has failed. It may only be cut off. Therefore, from the moment at which a lock is lost, all writes of its former
    holder must fail with a ``StoreError``.

    No method waits forever: if the shared storage cannot be reached, it raises a ``StoreError``.
    """

    async def try_lock(self, name: str) -> bool:
        """Take a lock without waiting for its holder. Return ``False`` if it is held, also by this open store.

        If it raises or is cancelled, the lock is not held.
        """

    async def unlock(self, name: str) -> None:
        """Release a lock that this open store holds."""


@frozen
class StoreSpec:
    """The registration of a store: ``sideband_stores()`` of a plugin in the group ``sideband.v1.store`` returns a list.

    Args:
        name: the entry-point name.
        open: a function that takes the folder for the store's files, and returns an async context manager that yields
            the open store and closes it.

    Example:
        >>> def sideband_stores():
        ...     return [StoreSpec(name="sqlite", open=open_sqlite)]
    """

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Store]] = field(repr=False)
