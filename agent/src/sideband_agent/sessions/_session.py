"""A session that is open for writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from attrs import define, field
from sideband.errors import StoreError
from sideband.messages import Message

from ._errors import SessionClosed
from ._format import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    NameEntry,
    RunEntry,
    new_id,
    now,
)
from ._info import SessionInfo, update_info
from ._lock import SessionLock
from ._session_store import SessionRecords, StoredSession
from ._tree import EntryTree, SessionContext

# The maximum number of records that lists read after a crash to update the summary of a session.
_DESCRIBED_EVERY = 256
_CLOSE_SECONDS = 2.0


@define(eq=False)
class Session:
    """A session that is open for writing, exclusively. Use it with ``async with``, or close it with ``aclose``.

    Stored entries never change: a rewind adds an entry. They survive the end of the process as soon as a method has
    returned, and a power failure after ``sync``, which ``aclose`` calls if the disk answers within two seconds.

    Attributes:
        tree: the entries of the session.

    Example:
        >>> async def talk(sessions):
        ...     async with await sessions.create(name="stars") as session:
        ...         await session.append_message(UserMessage(content="hello"))
    """

    _records: SessionRecords = field(repr=False)
    _lock: SessionLock = field(repr=False)
    tree: EntryTree = field(repr=False)
    _count: int
    _info: SessionInfo = field(repr=False)
    # The number of records that the stored summary covers if it is marked incomplete; 0 if it is marked complete.
    _described: int = 0
    _uncertain: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _turn: anyio.Lock = field(factory=lambda: anyio.Lock(fast_acquire=True), init=False, repr=False)

    @classmethod
    def of(cls, records: SessionRecords, lock: SessionLock, stored: StoredSession, *, is_new: bool) -> Session:
        """Build the session that was read or created under this lock."""
        return cls(records, lock, stored.tree, stored.records, stored.info, stored.records if is_new else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def id(self) -> str:
        """Its id."""
        return self.tree.id

    @property
    def name(self) -> str | None:
        """The name that the user gave it."""
        return self.tree.name

    @property
    def channel(self) -> str:
        """The channel through which the user talks to the agent, such as ``cli``."""
        return self.tree.channel

    @property
    def folder(self) -> Path | None:
        """Its working directory."""
        return self.tree.folder

    @property
    def parent(self) -> str | None:
        """The session that it was forked from."""
        return self.tree.parent

    @property
    def notices(self) -> Sequence[str]:
        """What was damaged and how it was repaired."""
        return tuple(self.tree.notices)

    @property
    def leaf(self) -> str | None:
        """The id of the current entry, which the next one follows; ``None`` at the beginning."""
        return self.tree.leaf

    @property
    def info(self) -> SessionInfo:
        """Its summary for lists."""
        return self._info

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """Return the entries from the first one to ``leaf``, or to the current leaf.

        Raises:
            EntryNotFound: if the entry does not exist.
        """
        return self.tree.path(leaf)

    def newest_first(self) -> Iterable[Entry]:
        """Yield the entries of the path from the current leaf back to the first one."""
        return self.tree.newest_first()

    def context(self) -> SessionContext:
        """Return the messages and the settings of the next model call."""
        return self.tree.context()

    def messages(self) -> tuple[Message, ...]:
        """Return the messages that a model sees, oldest first. Compacted ones are replaced by their summary."""
        return self.tree.context().messages

    def all_messages(self) -> tuple[Message, ...]:
        """Return all messages on the path, oldest first, also those that were compacted."""
        found = [one.message for one in self.newest_first() if isinstance(one, MessageEntry | CustomMessageEntry)]
        return tuple(reversed(found))

    def last_custom(self, kind: str) -> Mapping[str, Any] | None:
        """Return the data of this kind that was stored last on the path, or ``None``."""
        entries = (one for one in self.newest_first() if isinstance(one, CustomEntry) and one.kind == kind)
        data = next(entries, None)
        return data.data if data is not None and isinstance(data.data, dict) else None

    def unfinished_run(self) -> RunEntry | None:
        """Return the last run on the path if it can be resumed: it was interrupted, is parked, or has failed."""
        return self.tree.unfinished_run()

    async def append(self, *bodies: Entry) -> tuple[str, ...]:
        """Append entries atomically after the current leaf.

        Args:
            bodies: the entries, without ``id``, ``parent`` and ``time``.

        Returns:
            Their ids.

        Raises:
            EntryNotFound: if an entry refers to one that does not exist.
            SessionClosed: if the session is closed.
            StoreError: if the entries could not be stored.

        Example:
            >>> async def choose(session):
            ...     await session.append(ModelEntry(model="anthropic:claude-sonnet-4-5"), ThinkingEntry(level="low"))
        """
        return await self._change(lambda: bodies)

    async def append_message(self, message: Message, *, run: str | None = None, step: str | None = None) -> str:
        """Append a message and return the id of its entry. Raises the same errors as ``append``."""
        return (await self.append(MessageEntry(message=message, run=run, step=step)))[0]

    async def append_custom(self, kind: str, data: Mapping[str, Any], *, plugin: str = "") -> str:
        """Append data of a plugin, which models do not see, and return the id of its entry.

        Args:
            kind: the kind of data, chosen by the plugin.
            data: the data.
            plugin: the name of the plugin.

        Raises:
            ValueError: if the data is not JSON.
            StoreError: if the entry could not be stored.
        """
        return (await self.append(CustomEntry(plugin=plugin, kind=kind, data=dict(data))))[0]

    async def rewind(self, entry: str | None, *, summary: str = "") -> str | None:
        """Continue from another entry. The entries after it remain as a branch.

        Args:
            entry: the entry that the next one follows; the beginning if ``None``.
            summary: a summary of the branch that is left, shown to models; empty for none.

        Returns:
            The id of the new leaf.

        Raises:
            EntryNotFound: if the entry does not exist.
            StoreError: if nothing could be stored; the session has not changed.
        """

        def bodies() -> tuple[Entry, ...]:
            back = LeafEntry(target=entry)
            return (back, BranchSummaryEntry(from_=self.leaf, summary=summary)) if summary else (back,)

        await self._change(bodies)
        return self.leaf

    async def label(self, entry: str, text: str | None) -> str:
        """Set or remove the label of an entry. Raises the same errors as ``append``."""
        return (await self.append(LabelEntry(target=entry, label=text or None)))[0]

    async def rename(self, name: str | None) -> str:
        """Set or remove the name of the session. Raises the same errors as ``append``."""
        return (await self.append(NameEntry(name=name or None)))[0]

    async def sync(self) -> None:
        """Return when all entries are on disk.

        Raises:
            StoreError: if they could not be synced.
        """
        await self._records.store.sync()

    async def aclose(self) -> None:
        """Close the session and release its lock."""
        if not self._closed:
            self._closed = True
            try:
                await self._settle()
            finally:
                await self._lock.release()

    async def _change(self, bodies: Callable[[], tuple[Entry, ...]]) -> tuple[str, ...]:
        async with self._turn:
            if self._closed:
                raise SessionClosed(self.id)
            await self._catch_up()
            stored = [self._records.redacted(entry) for entry in self._chained(bodies())]
            if not stored:
                return ()
            await self._mark_incomplete()
            records = [record for _, record in stored]
            self._uncertain = True
            await self._records.append(self.id, records)
            self._uncertain = False
            for entry, _ in stored:
                self.tree.follow(entry)
            self._counted(records)
            return tuple(entry.id for entry, _ in stored)

    def _chained(self, bodies: tuple[Entry, ...]) -> list[Entry]:
        parent, time, entries = self.leaf, now(), []
        for body in bodies:
            self._check_references(body)
            entry = body.model_copy(update={"id": new_id(), "parent": parent, "time": time})
            if isinstance(entry, LeafEntry):
                entry = entry.model_copy(update={"target": self.tree.position(entry.target)})
            parent = entry.target if isinstance(entry, LeafEntry) else entry.id
            entries.append(entry)
        return entries

    def _check_references(self, body: Entry) -> None:
        target = None
        if isinstance(body, (LeafEntry, LabelEntry)):
            target = body.target
        elif isinstance(body, CompactionEntry):
            target = body.first_kept
        if target is not None:
            self.tree.entry(target)

    async def _catch_up(self) -> None:
        """Read the records of an append that was cancelled or failed and may have been stored."""
        if self._uncertain:
            records = await self._records.since(self.id, self._count)
            for number, record in enumerate(records, start=self._count):
                self.tree.take(record, f"entry {number}")
            self._counted(records)
            self._uncertain = False

    def _counted(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._count += len(records)
        self._info = update_info(self._info, records)

    async def _mark_incomplete(self) -> None:
        """Mark the stored summary as incomplete; update it every 256 records."""
        if not self._described or self._count - self._described >= _DESCRIBED_EVERY:
            await self._records.describe(self._info, self._count, settled=False)
            self._described = self._count

    async def _settle(self) -> None:
        if not self._described:
            return
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            try:
                if not self._uncertain:
                    await self._records.describe(self._info, self._count, settled=True)
                await self.sync()
            except StoreError:
                # the summary stays marked as incomplete, so lists read the records
                return
