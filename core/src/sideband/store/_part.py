"""A part of a store: all its keys have the same beginning, which its users neither see nor can leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, cast
from urllib.parse import quote

from attrs import frozen

from ..errors import StoreConflict, StoreError, StoreKeyInvalid
from ._protocol import Document, Record, Store, Transaction

_MAX_BYTES = 1_024


@frozen
class _Part:
    """The operations of a part. Only those of a whole store, not of a transaction, accept ``durable``."""

    _whole: Callable[[], Store]
    _beginning: str

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        return await self._whole().get(self._path(key))

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, **durable: bool) -> int:
        """Write ``value`` and return its new version."""
        with self._named(key) as path:
            return await self._whole().put(path, value, version=version, **durable)

    async def delete(self, key: str, *, version: int | None = None, **durable: bool) -> bool:
        """Delete the document and return whether it existed."""
        with self._named(key) as path:
            return await self._whole().delete(path, version=version, **durable)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that start with ``prefix``, sorted."""
        found = await self._whole().keys(self._path(prefix) if prefix else self._beginning)
        return [key.removeprefix(self._beginning) for key in found]

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], **durable: bool) -> int:
        """Append all values to a stream atomically and return the position of the first."""
        with self._named(stream) as path:
            return await self._whole().append(path, values, **durable)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream in order, from position ``start``."""
        return await self._whole().read(self._path(stream), start=start, limit=limit)

    async def delete_stream(self, stream: str, **durable: bool) -> bool:
        """Delete a whole stream and return whether it existed."""
        return await self._whole().delete_stream(self._path(stream), **durable)

    @contextmanager
    def _named(self, key: str) -> Iterator[str]:
        """Yield the key in the whole store. Errors of the store name it as the user of the part does."""
        path = self._path(key)
        try:
            yield path
        except StoreError as error:
            error.clean(lambda text: text.replace(self._beginning, "", 1))
            if isinstance(error, StoreConflict):
                error.key = key
            raise

    def _path(self, key: str) -> str:
        """Return the key in the whole store. Stores differ in what they accept, so a part accepts what all do."""
        if problem := _problem(key):
            raise StoreKeyInvalid(key, problem)
        return self._beginning + key


def _problem(key: object) -> str | None:
    """Return why a text cannot be a key, or ``None``."""
    if not isinstance(key, str):
        return f"expected a text, got a {type(key).__name__}"
    if not key:
        return "it is empty"
    if (size := len(key.encode(errors="surrogatepass"))) > _MAX_BYTES:
        return f"it has {size:,} bytes, which exceeds the limit of {_MAX_BYTES:,}"
    if any(one < " " or "\x7f" <= one <= "\x9f" or "\ud800" <= one <= "\udfff" for one in key):
        return "it contains a control character or a lone surrogate"
    return None


@frozen
class StorePart(_Part):
    """A part of a store, which is a ``Store`` itself. ``ctx.store`` of a plugin is one.

    A key or the name of a stream is a text of 1 to 1,024 bytes in UTF-8 without control characters. It may contain
    ``/``, which has no special meaning. A transaction of a part is one of the whole store, and other users may have to
    wait for its end: keep it short.

    Args:
        whole: a function that returns the store, or raises if it is not open.
        beginning: the beginning of all keys and names of streams of this part in the store.

    Raises:
        StoreKeyInvalid: if a key or the name of a stream is not accepted. Nothing was read or written.

    Example:
        >>> async def count_start(ctx: PluginContext) -> int:
        ...     return await ctx.store.put("starts", {})
    """

    @classmethod
    def of_plugin(cls, whole: Callable[[], Store], plugin: str) -> Self:
        """Return the part of a plugin. No name of a plugin, whatever it contains, leads into the part of another."""
        return cls(whole, f"plugin/{quote(plugin, safe='')}/")

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """Run the body as a transaction of the whole store, which sees only this part."""
        async with self._whole().transaction(durable=durable) as transaction:
            yield _Part(lambda: cast("Store", transaction), self._beginning)

    async def sync(self) -> None:
        """Return when all writes to the whole store are on disk."""
        await self._whole().sync()

    def unsynced(self) -> Callable[[], None] | None:
        """Return the job that syncs the whole store, or ``None``."""
        return self._whole().unsynced()
