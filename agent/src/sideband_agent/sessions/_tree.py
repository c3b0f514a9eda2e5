"""A session in memory: entries, each of which follows another, and the one that the conversation stands at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband.messages import AssistantMessage, Message, UserMessage

from ._errors import EntryAmbiguous, EntryNotFound
from ._format import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    EntryReader,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RunEntry,
    SessionHeader,
    ThinkingEntry,
)

_SUMMARY = "What was said before is replaced by this summary of it:\n\n{}"
_BRANCH = "Before it came back to this point, the conversation went another way. A summary of that:\n\n{}"


@frozen
class SessionContext:
    """What a model sees of a session, and how it is asked.

    Attributes:
        messages: oldest first; what was compacted is replaced by its summary.
        entries: the ids of the entries that they came from.
        model: ``provider:model`` as last chosen; ``None`` if none was.
        thinking: how much it may think, as last chosen; ``None`` if nothing was.
        compaction: the compaction whose summary comes first, if there is one.
    """

    messages: tuple[Message, ...]
    entries: tuple[str, ...]
    model: str | None = None
    thinking: str | None = None
    compaction: CompactionEntry | None = None


@frozen
class _Standing:
    """What holds at an entry, by those on the way to it. Shared by all entries between which nothing changes."""

    model: str | None = None
    thinking: str | None = None
    compaction: CompactionEntry | None = None
    run: RunEntry | None = None


_BEGINNING = _Standing()


class SessionTree:
    """The entries of a session.

    Adding one costs the same however many there are, and so does everything that is asked about the end of the
    conversation; what was compacted is not looked at again.

    Attributes:
        header: what holds for the whole session.
        name: what the user calls it; ``None`` if it has no name.
        channel: where its user was last.
        labels: the marks, by the entries that have them.
        notices: what was damaged, and how it was mended.
    """

    def __init__(self, header: SessionHeader) -> None:
        self.header = header
        self.name: str | None = None
        self.channel = header.channel
        self.labels: dict[str, str] = {}
        self._reader = EntryReader()
        self._entries: dict[str, Entry] = {}
        self._copied: set[str] = set()
        self._children: dict[str | None, list[str]] = {}
        self._standings: dict[str | None, _Standing] = {None: _BEGINNING}

    @classmethod
    def of(cls, header: SessionHeader, records: Iterable[Mapping[str, Any]]) -> SessionTree:
        """The tree of the entries that these records hold, with notices of what had to be mended."""
        tree = cls(header)
        for number, record in enumerate(records, start=1):
            tree.take(record, f"entry {number}")
        return tree

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.header.id

    @property
    def folder(self) -> Path | None:
        """The working directory of the session."""
        return self.header.path

    @property
    def parent(self) -> str | None:
        """The session that it was forked from."""
        return self.header.parent

    @property
    def notices(self) -> list[str]:
        """What was damaged, and how it was mended."""
        return self._reader.notices

    @property
    def leaf(self) -> str | None:
        """The entry that the conversation stands at; ``None``: at the beginning."""
        return self._reader.leaf

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, in the order in which they were stored."""
        return tuple(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries

    def entry(self, entry: str) -> Entry:
        """The entry with this id.

        Raises:
            EntryNotFound: there is none.
        """
        try:
            return self._entries[entry]
        except KeyError:
            raise EntryNotFound(self.id, entry) from None

    def find(self, entry: str) -> str:
        """The id of the entry that is meant: by its id, by a label, or by the beginning of its id.

        Raises:
            EntryNotFound: there is none.
            EntryAmbiguous: there are several.
        """
        if entry in self._entries:
            return entry
        found = [one for one, label in self.labels.items() if label == entry and one in self._entries]
        found = found or [one for one in self._entries if entry and one.startswith(entry)]
        if not found:
            raise EntryNotFound(self.id, entry)
        if len(found) > 1:
            raise EntryAmbiguous(self.id, entry, found)
        return found[0]

    def is_copied(self, entry: str) -> bool:
        """Whether an entry came from elsewhere, with a fork or an import."""
        return entry in self._copied

    def children(self, entry: str | None) -> tuple[Entry, ...]:
        """The entries that follow this one; those that follow none for ``None``."""
        return tuple(self._entries[child] for child in self._children.get(entry, ()))

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """The entries from the first one to ``leaf``, or to where the conversation stands.

        Raises:
            EntryNotFound: there is no such entry.
        """
        return tuple(reversed(list(self._back_from(self._at(leaf)))))

    def newest_first(self) -> Iterable[Entry]:
        """The entries from where the conversation stands back to the first one, looked up one after the other."""
        return self._back_from(self.leaf)

    def context(self, leaf: str | None = None) -> SessionContext:
        """What a model sees at an entry, or where the conversation stands.

        Raises:
            EntryNotFound: there is no such entry.
        """
        at = self._at(leaf)
        standing = self._standings[at]
        shown = [(one.id, message) for one in self._shown(at, standing) if (message := _message_of(one)) is not None]
        if standing.compaction is not None:
            summary = UserMessage(content=_SUMMARY.format(standing.compaction.summary), source="summary")
            shown[:0] = [(standing.compaction.id, summary), *self._carried(standing.compaction)]
        return SessionContext(
            messages=tuple(message for _, message in shown),
            entries=tuple(entry for entry, _ in shown),
            model=standing.model,
            thinking=standing.thinking,
            compaction=standing.compaction,
        )

    def _carried(self, compaction: CompactionEntry) -> list[tuple[str, Message]]:
        """The requests that a compaction keeps in sight, though they are older than what it keeps."""
        entries = [self._entries[one] for one in dict.fromkeys(compaction.carried) if one in self._entries]
        found = [(one.id, message) for one in entries if isinstance(message := _message_of(one), UserMessage)]
        return list(found)

    def position(self, entry: str | None) -> str | None:
        """Where the conversation stands at an entry: there, or where it goes back to.

        Raises:
            EntryNotFound: there is no such entry.
        """
        found = None if entry is None else self.entry(entry)
        return found.target if isinstance(found, LeafEntry) else entry

    def unfinished_run(self) -> RunEntry | None:
        """The last run on the path, if it can be gone on with. One that was copied from elsewhere can't."""
        run = self._standings[self.leaf].run
        return run if run is not None and run.status in {"started", "parked", "failed"} else None

    def take(self, record: Mapping[str, Any], where: str) -> Entry | None:
        """Add what a stored record holds, mended if that is needed; ``None`` if it holds no entry."""
        entry = self._reader.take(record, where)
        if entry is not None:
            self._add(entry)
        return entry

    def follow(self, entry: Entry) -> None:
        """Add an entry that was made for this tree."""
        self._reader.follow(entry)
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.id] = entry
        if len(self._entries) <= self.header.copied:
            self._copied.add(entry.id)
        self._children.setdefault(entry.parent, []).append(entry.id)
        self._standings[entry.id] = self._standing_at(entry)
        if isinstance(entry, NameEntry):
            self.name = entry.name
        elif isinstance(entry, ChannelEntry):
            self.channel = entry.channel
        elif isinstance(entry, LabelEntry) and entry.label:
            self.labels[entry.target] = entry.label
        elif isinstance(entry, LabelEntry):
            self.labels.pop(entry.target, None)

    def _standing_at(self, entry: Entry) -> _Standing:
        before = self._standings[entry.parent]
        if isinstance(entry, ModelEntry):
            return evolve(before, model=entry.model)
        if isinstance(entry, ThinkingEntry):
            return evolve(before, thinking=entry.level)
        if isinstance(entry, CompactionEntry):
            return evolve(before, compaction=entry)
        if isinstance(entry, RunEntry) and entry.id not in self._copied:
            return evolve(before, run=entry)
        return before

    def _at(self, leaf: str | None) -> str | None:
        return self.leaf if leaf is None else self.position(leaf)

    def _back_from(self, at: str | None) -> Iterable[Entry]:
        while at is not None:
            entry = self._entries[at]
            yield entry
            at = entry.parent

    def _shown(self, at: str | None, standing: _Standing) -> list[Entry]:
        """The entries that models see as they are."""
        compaction, shown = standing.compaction, []
        first = compaction.first_kept if compaction is not None else None
        for entry in self._back_from(at):
            if entry is compaction and first is None:
                break
            shown.append(entry)
            if entry.id == first:
                break
        return shown[::-1]


def _message_of(entry: Entry) -> Message | None:
    """What a model sees of an entry that is not summarised."""
    if isinstance(entry, MessageEntry):
        failed = isinstance(entry.message, AssistantMessage) and entry.message.stop == "error"
        return None if failed else entry.message
    if isinstance(entry, CustomMessageEntry):
        return entry.message
    if isinstance(entry, BranchSummaryEntry):
        return UserMessage(content=_BRANCH.format(entry.summary), source="branch")
    return None
