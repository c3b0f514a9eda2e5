"""A store in memory, for sessions that end with their agent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field
from sideband.errors import StoreConflict
from sideband.store import Document, Record, Transaction


@define(eq=False)
class MemoryStore:
    """A ``sideband.store.Store`` in memory. Each operation is atomic since it does not wait.

    A failed transaction restores the previous content. Nothing is ever on disk, so ``durable`` changes nothing.
    """

    _documents: dict[str, tuple[int, str]] = field(factory=dict, init=False)
    _streams: dict[str, list[str]] = field(factory=dict, init=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        found = self._documents.get(key)
        return None if found is None else Document(json.loads(found[1]), found[0])

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:  # noqa: ARG002
        """Write ``value`` and return its new version."""
        found = self._check(key, version)
        self._documents[key] = (found + 1, json.dumps(value))
        return found + 1

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:  # noqa: ARG002
        """Remove the document. Return whether it existed."""
        self._check(key, version)
        return self._documents.pop(key, None) is not None

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted."""
        return sorted(key for key in self._documents if key.startswith(prefix))

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:  # noqa: ARG002
        """Append records to a stream and return the position of the first one."""
        texts = [json.dumps(value) for value in values]
        records = self._streams.setdefault(stream, [])
        records.extend(texts)
        return len(records) - len(texts)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream from ``start``, in order."""
        texts = self._streams.get(stream, [])[start : None if limit is None else start + limit]
        return [Record(start + index, json.loads(text)) for index, text in enumerate(texts)]

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:  # noqa: ARG002
        """Remove a stream. Return whether it existed."""
        return self._streams.pop(stream, None) is not None

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:  # noqa: ARG002
        """Run the body as a transaction, rolled back if it raises or is cancelled."""
        documents, streams = dict(self._documents), {name: list(texts) for name, texts in self._streams.items()}
        try:
            yield self
        except BaseException:
            self._documents, self._streams = documents, streams
            raise

    def unsynced(self) -> None:
        """There is no disk."""

    async def sync(self) -> None:
        """Do nothing: this store ends with its process."""

    def _check(self, key: str, version: int | None) -> int:
        found = self._documents.get(key, (0, ""))[0]
        if version is not None and version != found:
            raise StoreConflict(key, expected=version, found=found)
        return found
