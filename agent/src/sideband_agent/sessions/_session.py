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
    Entry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    NameEntry,
    RunEntry,
    new_id,
    now,
    record_of,
)
from ._info import SessionInfo, update_info
from ._lock import SessionLock
from ._session_store import SessionRecords, StoredSession
from ._tree import SessionContext, SessionTree

# After a crash, lists read at most so many records of a session to say what it has.
_DESCRIBED_EVERY = 256
_CLOSE_SECONDS = 2.0


@define(eq=False)
class Session:
    """A session that this host writes, and nobody else at the same time. Used as ``async with``, or closed.

    Nothing that was stored is ever changed: going back adds an entry that says so.

    Example:
        >>> async def talk(sessions):
        ...     async with await sessions.create(name="stars") as session:
        ...         await session.append_message(UserMessage(content="hello"))
    """

    _records: SessionRecords = field(repr=False)
    _lock: SessionLock = field(repr=False)
    tree: SessionTree = field(repr=False)
    _count: int
    _info: SessionInfo = field(repr=False)
    # How many records the document sums up, if it says that there may be more; 0 if it says that these are all.
    _described: int = 0
    _uncertain: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _turn: anyio.Lock = field(factory=lambda: anyio.Lock(fast_acquire=True), init=False, repr=False)

    @classmethod
    def of(cls, records: SessionRecords, lock: SessionLock, stored: StoredSession, *, is_new: bool) -> Session:
        """The session that was read, or made, under this lock."""
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
        """What the user calls it."""
        return self.tree.name

    @property
    def channel(self) -> str:
        """Where its user is."""
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
        """What was damaged, and how it was mended."""
        return tuple(self.tree.notices)

    @property
    def leaf(self) -> str | None:
        """The entry that the conversation stands at; ``None``: at the beginning."""
        return self.tree.leaf

    @property
    def info(self) -> SessionInfo:
        """What lists say of it."""
        return self._info

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """The entries from the first one to ``leaf``, or to where the conversation stands.

        Raises:
            EntryNotFound: there is no such entry.
        """
        return self.tree.path(leaf)

    def newest_first(self) -> Iterable[Entry]:
        """The entries of the path from where the conversation stands back to the first one, one after the other."""
        return self.tree.newest_first()

    def context(self) -> SessionContext:
        """What a model sees now, and how it is asked."""
        return self.tree.context()

    def messages(self) -> tuple[Message, ...]:
        """What a model sees now: oldest first, what was compacted replaced by its summary."""
        return self.tree.context().messages

    def unfinished_run(self) -> RunEntry | None:
        """The last run on the path, if it has not ended, is parked, or has failed."""
        return self.tree.unfinished_run()

    async def append(self, *bodies: Entry) -> tuple[str, ...]:
        """Store entries, one after the other behind where the conversation stands; all of them or none.

        What was appended survives a crash when this returns.

        Args:
            bodies: the entries, without ``id``, ``parent`` and ``time``.

        Returns:
            Their ids.

        Raises:
            EntryNotFound: one names an entry that there is not.
            SessionClosed: the session is closed.
            StoreError: nothing was stored.

        Example:
            >>> async def choose(session):
            ...     await session.append(ModelEntry(model="anthropic:claude-sonnet-4-5"), ThinkingEntry(level="low"))
        """
        return await self._change(lambda: bodies)

    async def append_message(self, message: Message, *, run: str | None = None, step: str | None = None) -> str:
        """Store a message; returns the id of its entry. Raises what ``append`` raises."""
        return (await self.append(MessageEntry(message=message, run=run, step=step)))[0]

    async def append_custom(self, kind: str, data: Mapping[str, Any], *, plugin: str = "") -> str:
        """Store data of a plugin's own, which no model sees; returns the id of its entry.

        Args:
            kind: what it is, as the plugin calls it.
            data: the data.
            plugin: the plugin.

        Raises:
            ValueError: it is not JSON.
            StoreError: nothing was stored.
        """
        return (await self.append(CustomEntry(plugin=plugin, kind=kind, data=dict(data))))[0]

    async def rewind(self, entry: str | None, *, summary: str = "") -> str | None:
        """Go on from another entry. What came after it stays, as a branch of its own.

        Args:
            entry: the entry that the next one is to follow; ``None``: the beginning.
            summary: what was done on the branch that is left; models see it.

        Returns:
            Where the conversation stands then.

        Raises:
            EntryNotFound: there is no such entry.
            StoreError: nothing has changed.
        """

        def bodies() -> tuple[Entry, ...]:
            back = LeafEntry(target=entry)
            return (back, BranchSummaryEntry(from_=self.leaf, summary=summary)) if summary else (back,)

        await self._change(bodies)
        return self.leaf

    async def label(self, entry: str, text: str | None) -> str:
        """Mark an entry, or take its mark away. Raises what ``append`` raises."""
        return (await self.append(LabelEntry(target=entry, label=text or None)))[0]

    async def rename(self, name: str | None) -> str:
        """Name the session, or take its name away. Raises what ``append`` raises."""
        return (await self.append(NameEntry(name=name or None)))[0]

    async def aclose(self) -> None:
        """Let others write it."""
        if not self._closed:
            self._closed = True
            try:
                await self._settle()
            finally:
                self._lock.release()

    async def _change(self, bodies: Callable[[], tuple[Entry, ...]]) -> tuple[str, ...]:
        async with self._turn:
            if self._closed:
                raise SessionClosed(self.id)
            await self._catch_up()
            entries = [self._records.redacted(entry) for entry in self._chained(bodies())]
            if not entries:
                return ()
            await self._announce()
            records = [record_of(entry) for entry in entries]
            self._uncertain = True
            await self._records.append(self.id, records)
            self._uncertain = False
            for entry in entries:
                self.tree.follow(entry)
            self._counted(records)
            return tuple(entry.id for entry in entries)

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
        told = None
        if isinstance(body, (LeafEntry, LabelEntry)):
            told = body.target
        elif isinstance(body, CompactionEntry):
            told = body.first_kept
        if told is not None:
            self.tree.entry(told)

    async def _catch_up(self) -> None:
        """Read what an append has stored that was cancelled, or failed, before it could say so."""
        if self._uncertain:
            records = await self._records.since(self.id, self._count)
            for number, record in enumerate(records, start=self._count):
                self.tree.take(record, f"entry {number}")
            self._counted(records)
            self._uncertain = False

    def _counted(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._count += len(records)
        self._info = update_info(self._info, records)

    async def _announce(self) -> None:
        """Tell lists that there is more than the document says; now and then, what there is."""
        if not self._described or self._count - self._described >= _DESCRIBED_EVERY:
            await self._records.describe(self._info, self._count, settled=False)
            self._described = self._count

    async def _settle(self) -> None:
        if self._described and not self._uncertain:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                try:
                    await self._records.describe(self._info, self._count, settled=True)
                except StoreError:
                    # The document says that there may be more, so that lists look.
                    return
