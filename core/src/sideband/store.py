"""The store protocol. A plugin implements it; the kernel keeps sessions, claims and heads in it.

Documents are JSON objects under a string key. Their version starts at 1 and grows by 1 with each write.
Streams are append-only sequences of JSON objects, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

__all__ = ["Document", "Record", "Store", "StoreSpec", "Transaction"]


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
    """The operations of a transaction. A store has the same methods, each of which runs in its own transaction."""

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
    """Storage for state. Several tasks and several hosts may use it concurrently."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Run the body as a transaction: roll back if it raises or is cancelled. Transactions cannot be nested."""


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
