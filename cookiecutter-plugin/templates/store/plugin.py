"""The store: everything is in one file of JSON lines, one line a transaction, which people and programs can read.

All data is in memory too, and a transaction copies its index, so it is for small states, such as those of tests.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
from sideband import StoreConflict, StoreError
from sideband.store import Document, Record, Store, StoreSpec

__all__ = ["sideband_stores"]

NAME = "{{ cookiecutter.__entry }}"
FILE = f"{NAME}.jsonl"
Value = Mapping[str, Any]


class Contents:
    """The documents and streams, and the changes that were made to them: a `Transaction` of the protocol."""

    def __init__(self, documents: dict[str, tuple[str, int]], streams: dict[str, list[str]]) -> None:
        # Values are kept as JSON, so that callers cannot change what is stored.
        self.documents = documents
        self.streams = streams
        self.changes: list[list[Any]] = []

    async def get(self, key: str) -> Document | None:
        """Return a document."""
        found = self.documents.get(key)
        return None if found is None else Document(json.loads(found[0]), found[1])

    async def put(self, key: str, value: Value, *, version: int | None = None) -> int:
        """Write a document and return its version."""
        found = self._checked(key, version)
        self.change(["put", key, as_json(value), found + 1])
        return found + 1

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete a document and return whether it existed."""
        if not self._checked(key, version):
            return False
        self.change(["delete", key])
        return True

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with a text."""
        return sorted(key for key in self.documents if key.startswith(prefix))

    async def append(self, stream: str, values: Sequence[Value]) -> int:
        """Append to a stream and return the position of the first value."""
        position = len(self.streams.get(stream, ()))
        if values:
            self.change(["append", stream, [as_json(value) for value in values]])
        return position

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return the records of a stream."""
        values = self.streams.get(stream, [])[start : None if limit is None else start + limit]
        return [Record(start + index, json.loads(value)) for index, value in enumerate(values)]

    async def delete_stream(self, stream: str) -> bool:
        """Delete a stream and return whether it existed."""
        if stream not in self.streams:
            return False
        self.change(["delete_stream", stream])
        return True

    def change(self, change: list[Any]) -> None:
        """Apply a change, and remember it."""
        self.changes.append(change)
        match change:
            case ["put", key, value, version]:
                self.documents[key] = (value, version)
            case ["delete", key]:
                del self.documents[key]
            case ["append", stream, values]:
                self.streams[stream] = [*self.streams.get(stream, ()), *values]  # other contents may share the list
            case ["delete_stream", stream]:
                del self.streams[stream]

    def _checked(self, key: str, version: int | None) -> int:
        found = self.documents[key][1] if key in self.documents else 0
        if version is not None and version != found:
            raise StoreConflict(key, expected=version, found=found)
        return found


class JournalStore:
    """The open store. Hosts that use one file take turns: a lock of the file is held for each transaction."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._contents = Contents({}, {})
        self._read = 0
        self._turn = anyio.Lock()
        self._is_synced = True

    async def get(self, key: str) -> Document | None:
        """Return a document, see `Contents`."""
        return await self._current().get(key)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with a text."""
        return await self._current().keys(prefix)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return the records of a stream."""
        return await self._current().read(stream, start=start, limit=limit)

    async def put(self, key: str, value: Value, *, version: int | None = None, durable: bool = True) -> int:
        """Write a document in a transaction of its own."""
        async with self.transaction(durable=durable) as changes:
            return await changes.put(key, value, version=version)

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:
        """Delete a document in a transaction of its own."""
        async with self.transaction(durable=durable) as changes:
            return await changes.delete(key, version=version)

    async def append(self, stream: str, values: Sequence[Value], *, durable: bool = True) -> int:
        """Append to a stream in a transaction of its own."""
        async with self.transaction(durable=durable) as changes:
            return await changes.append(stream, values)

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:
        """Delete a stream in a transaction of its own."""
        async with self.transaction(durable=durable) as changes:
            return await changes.delete_stream(stream)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Contents]:
        """Write the changes of the body at its end; a body that raises or is cancelled writes nothing."""
        async with self._turn, self._locked():
            current = self._current()
            changed = Contents(dict(current.documents), dict(current.streams))
            yield changed
            if changed.changes:
                self._write(changed)
            if durable:
                with anyio.CancelScope(shield=True):  # the changes are written, so the caller must know it
                    await self.sync()

    async def sync(self) -> None:
        """Bring everything to disk."""
        job = self.unsynced()
        if job is not None:
            await anyio.to_thread.run_sync(job)

    def unsynced(self) -> Callable[[], None] | None:
        """Return the job that brings everything to disk."""
        return None if self._is_synced else self._sync

    def _sync(self) -> None:
        self._is_synced = True  # what is written from now on is not
        try:
            os.fsync(self._file)
        except OSError as error:
            self._is_synced = False
            raise StoreError(f"cannot write {FILE} to disk: {error.strerror}", hint="check the disk") from error

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        with anyio.move_on_after(10) as scope:
            while not self._try_lock():  # noqa: ASYNC110  no event tells when another process unlocks it
                await anyio.sleep(0.005)
        if scope.cancelled_caught:
            raise StoreError(f"another host has locked {FILE} for 10 seconds", hint="end it", retryable=True)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _current(self) -> Contents:
        """Return the contents, with what other hosts have written meanwhile."""
        size = os.fstat(self._file).st_size
        if size > self._read:
            text = os.pread(self._file, size - self._read, self._read)
            complete = text.rpartition(b"\n")[0]  # another host may be writing the last line
            for line in complete.splitlines():
                for change in json.loads(line):
                    self._contents.change(change)
            self._read += len(complete) + 1 if complete else 0
            self._contents.changes.clear()
        return self._contents

    def _write(self, changed: Contents) -> None:
        line = json.dumps(changed.changes).encode() + b"\n"
        try:
            os.ftruncate(self._file, self._read)  # removes the line of a host that was killed while it wrote
            self._is_synced = False
            if os.pwrite(self._file, line, self._read) < len(line):
                raise OSError(28, "no space left on device")
        except OSError as error:
            os.ftruncate(self._file, self._read)
            raise StoreError(f"cannot write {FILE}: {error.strerror}", hint="free some space") from error
        self._read += len(line)
        self._contents = changed
        changed.changes.clear()


def as_json(value: Value) -> str:
    """Return an object as JSON text."""
    if not isinstance(value, Mapping):
        raise StoreError(f"expected an object, got a {type(value).__name__}", hint="store a dictionary")
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"the value is not JSON: {error}", hint="store plain data") from error


@asynccontextmanager
async def open_journal(folder: Path) -> AsyncIterator[Store]:
    """Open the store in a folder. Only the user can read its file."""
    file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        store = JournalStore(file)
        yield cast("Store", store)
        await store.sync()
    finally:
        os.close(file)


def sideband_stores() -> list[StoreSpec]:
    """Register the store."""
    return [StoreSpec(name=NAME, open=open_journal)]
