"""What a store promises. Sessions, claims and heads are core code on this protocol; a plugin supplies the engine.

Documents are JSON objects under a string key, with a version that starts at 1 and grows by 1 with each write.
Streams are append-only sequences of JSON objects, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from attrs import field, frozen

__all__ = ["Document", "Record", "Store", "StoreSpec", "Transaction"]


@frozen
class Document:
    """A stored object and its version (1 for the first write)."""

    value: Mapping[str, Any]
    version: int


@frozen
class Record:
    """One object of a stream and its position (from 0)."""

    position: int
    value: Mapping[str, Any]


class Transaction(Protocol):
    """What can be done inside a transaction, and, each as a transaction of its own, on a store."""

    async def get(self, key: str) -> Document | None:
        """The document under ``key``, or ``None``."""

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        """Write ``value`` and return its new version.

        Args:
            version: the version that this replaces; 0 means "must not exist yet", ``None`` means "whatever is there".

        Raises:
            StoreConflict: the document is at another version; nothing was written.
        """

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Remove the document; whether there was one. ``version`` as for ``put``."""

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """The keys that begin with ``prefix``, sorted."""

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        """Add to the end of a stream, all or nothing, and return the position of the first one added."""

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """The records of a stream from ``start``, in order, at most ``limit``."""

    async def delete_stream(self, stream: str) -> bool:
        """Remove a whole stream; whether there was one."""


class Store(Transaction, Protocol):
    """A place to keep state. Safe to use from many tasks of one host and from several hosts at once."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """All of the body, or, when it raises or is cancelled, nothing. Not nested."""


@frozen
class StoreSpec:
    """What a plugin of the group ``sideband.v1.store`` registers through ``sideband_stores()``.

    Args:
        name: the entry-point name.
        open: given a folder for its files, an async context manager that yields the open store and closes it.

    Example:
        >>> def sideband_stores():
        ...     return [StoreSpec(name="sqlite", open=open_sqlite)]
    """

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Store]] = field(repr=False)
