"""Transactions: what they write is kept here, and written by one script at their end.

While one is open, the server refuses the writes of others, also those of other hosts, which wait for its end. So
nothing that it has read can change. It ends by itself when it does nothing for `transaction_seconds`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from attrs import define, field
from sideband import StoreConflict, StoreError
from sideband.store import Document, Record

from ._calls import Caller
from ._connection import Argument, Command, RedisConnection
from ._operations import document, key_of, keys_in, range_of, records, slice_of, text_of
from ._scripts import BEGIN, COMMIT, RELEASE, TOUCH


class RunJob(Protocol):
    """Runs a job on a connection of the store."""

    async def __call__(self, job: Any, *, is_read: bool = False) -> Any:
        """Run the job, and return its result."""


@define(eq=False)
class _Stream:
    """What a transaction has done to a stream.

    Attributes:
        length: its length in the server, or 0 if it was deleted.
        is_cleared: whether the records in the server were deleted.
        added: the records that were added.
    """

    length: int
    is_cleared: bool = False
    added: list[str] = field(factory=list)


@define(eq=False)
class RedisTransaction:
    """The operations available inside ``RedisStore.transaction``.

    Args:
        caller: calls the server as the holder.
        token: what distinguishes the transaction from others.
        run: runs a job on a connection.
    """

    _caller: Caller
    _token: str
    _run: RunJob
    _documents: dict[str, tuple[str, int] | None] = field(factory=dict, init=False)
    _streams: dict[str, _Stream] = field(factory=dict, init=False)
    _is_ended: bool = field(default=False, init=False)

    async def get(self, key: str) -> Document | None:
        """Return the document under ``key``, or ``None``."""
        self._check()
        path = key_of(key)
        if key in self._documents:
            own = self._documents[key]
            return None if own is None else Document(json.loads(own[0]), own[1])
        (found,) = await self._ask(("HGET", self._caller.names.documents, path))
        return document(path, found)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None) -> int:
        """Write ``value`` and return its new version."""
        self._check()
        text = text_of(key, value)
        found = await self._version(key, version)
        self._documents[key] = (text, found + 1)
        return found + 1

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete the document, and return whether it existed."""
        self._check()
        found = await self._version(key, version)
        if found:
            self._documents[key] = None
        return bool(found)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        """Return the keys that begin with ``prefix``, sorted by code point."""
        self._check()
        (found,) = await self._ask(range_of(self._caller, key_of(prefix)))
        keys = set(keys_in(found))
        for key, own in self._documents.items():
            if key.startswith(prefix):
                (keys.discard if own is None else keys.add)(key)
        return tuple(sorted(keys))

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]]) -> int:
        """Append records to a stream, and return the position of the first one."""
        self._check()
        texts = [text_of(stream, value) for value in values]
        known = await self._stream(stream)
        first = known.length + len(known.added)
        known.added += texts
        return first

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Return at most ``limit`` records of a stream, from ``start``."""
        self._check()
        known, first = await self._stream(stream), max(start, 0)
        texts: list[str | bytes] = []
        if not known.is_cleared:
            (texts,) = await self._ask(slice_of(self._caller, key_of(stream), start, limit))
        if limit is None or len(texts) < limit:
            own = known.added[max(first - known.length, 0) :]
            texts = [*texts, *own[: None if limit is None else max(limit - len(texts), 0)]]
        return records(key_of(stream), texts, first)

    async def delete_stream(self, stream: str) -> bool:
        """Delete a stream, and return whether it existed."""
        self._check()
        known = await self._stream(stream)
        existed = bool(known.length or known.added)
        self._streams[stream] = _Stream(0, is_cleared=True)
        return existed

    def end(self) -> None:
        """Refuse further operations."""
        self._is_ended = True

    async def begin(self) -> None:
        """Begin, when no other transaction is open."""
        names = self._caller.names
        await self._run(
            partial(
                self._caller.call,
                script=BEGIN,
                keys=[names.transaction],
                arguments=(self._token, self._milliseconds),
                is_confirmed=False,
            ),
            is_read=True,  # with the same token, it can be repeated
        )

    async def commit(self) -> None:
        """Write everything, and let others write."""
        if not (self._documents or self._streams):
            await self.release()
            return
        names = self._caller.names
        keys: list[Argument] = [*names.of_documents]
        operations: list[Argument] = []
        for key, own in self._documents.items():
            path = key_of(key)
            operations += ["delete", path] if own is None else ["put", path, f"{own[1]}:{own[0]}"]
        for name, known in self._streams.items():
            keys.append(names.stream(key_of(name)))
            number = len(keys) + 1  # that of the holders comes first, and they are counted from 1
            if known.is_cleared:
                operations += ["clear", number]
            if known.added:
                operations += ["append", number, len(known.added), *known.added]
        await self._run(partial(self._caller.call, script=COMMIT, keys=keys, arguments=(self._token, *operations)))

    async def release(self) -> None:
        """Let others write, if that has not happened."""
        key = self._caller.names.transaction

        async def release(connection: RedisConnection) -> None:
            await connection.ask("EVAL", RELEASE.text, 1, key, self._token)

        await self._run(release, is_read=True)

    async def _version(self, key: str, expected: int | None) -> int:
        found = await self.get(key)
        version = 0 if found is None else found.version
        if expected is not None and version != expected:
            raise StoreConflict(key, expected=expected, found=version)
        return version

    async def _stream(self, name: str) -> _Stream:
        known = self._streams.get(name)
        if known is None:
            (length,) = await self._ask(("LLEN", self._caller.names.stream(key_of(name))))
            known = self._streams[name] = _Stream(length)
        return known

    async def _ask(self, *reads: Command) -> list[Any]:
        """Return the answers to commands that read, while no other can write."""
        job = partial(
            self._caller.call,
            script=TOUCH,
            keys=[self._caller.names.transaction],
            arguments=(self._token, self._milliseconds),
            is_confirmed=False,
            reads=reads,
        )
        answers: list[Any]
        _, *answers = await self._run(job, is_read=True)
        return answers

    @property
    def _milliseconds(self) -> int:
        return int(self._caller.config.transaction_seconds * 1_000)

    def _check(self) -> None:
        if self._is_ended:
            raise StoreError("the transaction has ended", hint="use it inside its `async with` block only")
