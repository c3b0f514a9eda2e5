"""A session in memory: a tree of entries and its current leaf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband.messages import AssistantMessage, Message, UserMessage
from sideband.rendering import whole_characters

from .._field_names import share_field_names, share_message_fields
from ._errors import EntryAmbiguous, EntryNotFound
from ._format import (
    BranchSummaryEntry,
    ChannelEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    EntryReader,
    GoalEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    RunEntry,
    SessionHeader,
    ThinkingEntry,
)

_SUMMARY = "The earlier conversation was replaced by this summary:\n\n{}"
_BRANCH = "The conversation was rewound to this point from another branch. A summary of that branch:\n\n{}"


@frozen
class SessionContext:
    """The messages and settings of a model call.

    Attributes:
        messages: oldest first; compacted ones are replaced by their summary.
        entries: the ids of their entries.
        model: the last chosen model, as ``provider:model``; ``None`` if none was chosen.
        thinking: the last chosen level of thinking; ``None`` if none was chosen.
        goal: the goal; ``None`` without one.
        compaction: the compaction whose summary comes first, or ``None``.
        fresh: the number of messages stored since this compaction; all without one.
    """

    messages: tuple[Message, ...]
    entries: tuple[str, ...]
    model: str | None = None
    thinking: str | None = None
    goal: str | None = None
    compaction: CompactionEntry | None = None
    fresh: int = 0


@frozen
class _EntryState:
    """The state at an entry, derived from the entries on its path. Shared by entries as long as it does not change."""

    model: str | None = None
    thinking: str | None = None
    goal: str | None = None
    compaction: CompactionEntry | None = None
    run: RunEntry | None = None


_BEGINNING = _EntryState()


class EntryTree:
    """The entries of a session.

    Adding an entry and reading the end of the conversation take constant time; compacted entries are not read again.

    Attributes:
        header: the session's header.
        name: the name that the user gave it, or ``None``.
        channel: the last channel of its user.
        labels: the labels, by entry id.
        notices: what was damaged and how it was repaired.
    """

    def __init__(self, header: SessionHeader) -> None:
        share_field_names(header)
        self.header = header
        self.name: str | None = None
        self.channel = header.channel
        self.labels: dict[str, str] = {}
        self._reader = EntryReader()
        self._entries: dict[str, Entry] = {}
        self._copied: set[str] = set()
        self._children: dict[str | None, list[str]] = {}
        self._states: dict[str | None, _EntryState] = {None: _BEGINNING}
        # The last context and its entry. The next one usually adds a few messages to it.
        self._last: tuple[str | None, SessionContext] = (None, SessionContext((), ()))

    @classmethod
    def of(cls, header: SessionHeader, records: Iterable[Mapping[str, Any]]) -> EntryTree:
        """Build a tree from records. Repairs are reported in ``notices``."""
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
        """What was damaged and how it was repaired."""
        return self._reader.notices

    @property
    def leaf(self) -> str | None:
        """The id of the current entry, which the next one follows; ``None`` at the beginning."""
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
        """Return the entry with this id.

        Raises:
            EntryNotFound: if it does not exist.
        """
        try:
            return self._entries[entry]
        except KeyError:
            raise EntryNotFound(self.id, entry) from None

    def find(self, entry: str) -> str:
        """Return the id of the entry with this id, label or id prefix.

        Raises:
            EntryNotFound: if no entry matches.
            EntryAmbiguous: if several entries match.
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
        """Return whether an entry was copied by a fork or an import."""
        return entry in self._copied

    def children(self, entry: str | None) -> tuple[Entry, ...]:
        """Return the children of an entry; the roots for ``None``."""
        return tuple(self._entries[child] for child in self._children.get(entry, ()))

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """Return the entries from the first one to ``leaf``, or to the current leaf.

        Raises:
            EntryNotFound: if the entry does not exist.
        """
        return tuple(reversed(list(self._back_from(self._at(leaf)))))

    def newest_first(self) -> Iterable[Entry]:
        """Yield the entries from the current leaf back to the first one, lazily."""
        return self._back_from(self.leaf)

    def context(self, leaf: str | None = None) -> SessionContext:
        """Return the messages and settings of a model call at an entry, or at the current leaf.

        Raises:
            EntryNotFound: if the entry does not exist.
        """
        at = self._at(leaf)
        if at == self._last[0]:
            return self._last[1]
        state = self._states[at]
        before, shown = self._shown(at, state)
        added = [(one.id, message) for one in shown if (message := _message_of(one)) is not None]
        context = SessionContext(
            messages=(*before.messages, *(message for _, message in added)),
            entries=(*before.entries, *(entry for entry, _ in added)),
            model=state.model,
            thinking=state.thinking,
            goal=state.goal,
            compaction=state.compaction,
            fresh=before.fresh + len(added),
        )
        if leaf is None:
            self._last = at, context
        return context

    def _carried(self, compaction: CompactionEntry) -> list[tuple[str, Message]]:
        """Return the requests older than ``first_kept`` that a compaction keeps visible."""
        entries = [self._entries[one] for one in dict.fromkeys(compaction.carried) if one in self._entries]
        found = [(one.id, message) for one in entries if isinstance(message := _message_of(one), UserMessage)]
        return list(found)

    def position(self, entry: str | None) -> str | None:
        """Return the position of an entry: the entry itself, or the target of a rewind.

        Raises:
            EntryNotFound: if the entry does not exist.
        """
        found = None if entry is None else self.entry(entry)
        return found.target if isinstance(found, LeafEntry) else entry

    def unfinished_run(self) -> RunEntry | None:
        """Return the last run on the path if it can be resumed. A copied run cannot."""
        run = self._states[self.leaf].run
        return run if run is not None and run.status in {"started", "parked", "failed"} else None

    def take(self, record: Mapping[str, Any], where: str) -> Entry | None:
        """Add the entry of a stored record, repaired if necessary. Return ``None`` if the record is not an entry."""
        entry = self._reader.take(record, where)
        if entry is not None:
            self._add(entry)
        return entry

    def follow(self, entry: Entry) -> None:
        """Add an entry that was made for this tree."""
        self._reader.follow(entry)
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        share_field_names(entry)
        if isinstance(entry, MessageEntry | CustomMessageEntry):
            share_message_fields(entry.message)
        self._entries[entry.id] = entry
        if len(self._entries) <= self.header.copied:
            self._copied.add(entry.id)
        self._children.setdefault(entry.parent, []).append(entry.id)
        self._states[entry.id] = self._state_at(entry)
        if isinstance(entry, NameEntry):
            self.name = entry.name
        elif isinstance(entry, ChannelEntry):
            self.channel = entry.channel
        elif isinstance(entry, LabelEntry) and entry.label:
            self.labels[entry.target] = entry.label
        elif isinstance(entry, LabelEntry):
            self.labels.pop(entry.target, None)

    def _state_at(self, entry: Entry) -> _EntryState:
        before = self._states[entry.parent]
        if isinstance(entry, ModelEntry):
            return evolve(before, model=entry.model)
        if isinstance(entry, ThinkingEntry):
            return evolve(before, thinking=entry.level)
        if isinstance(entry, GoalEntry):
            return evolve(before, goal=entry.goal if entry.status == "set" else None)
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

    def _shown(self, at: str | None, state: _EntryState) -> tuple[SessionContext, Sequence[Entry]]:
        """Return the beginning of the context at an entry, and the entries that models see verbatim after it."""
        last, context = self._last
        compaction = state.compaction
        shown: list[Entry] = []
        for entry in self._back_from(at):
            if entry.id == last:
                return context, shown[::-1]
            if entry is compaction:
                return self._compacted(compaction), shown[::-1]
            shown.append(entry)
        return SessionContext((), ()), shown[::-1]

    def _compacted(self, compaction: CompactionEntry) -> SessionContext:
        """Return the context right after a compaction: its summary, and the messages that it kept."""
        summary = UserMessage(content=_SUMMARY.format(whole_characters(compaction.summary)), source="summary")
        kept = []
        for entry in self._back_from(compaction.parent) if compaction.first_kept is not None else ():
            kept.append(entry)
            if entry.id == compaction.first_kept:
                break
        found = ((one.id, message) for one in reversed(kept) if (message := _message_of(one)) is not None)
        shown = [(compaction.id, summary), *self._carried(compaction), *found]
        return SessionContext(tuple(message for _, message in shown), tuple(entry for entry, _ in shown))


def _message_of(entry: Entry) -> Message | None:
    """Return the message that a model sees for an entry that is not summarized, or ``None``."""
    if isinstance(entry, MessageEntry):
        failed = isinstance(entry.message, AssistantMessage) and entry.message.stop == "error"
        return None if failed else entry.message
    if isinstance(entry, CustomMessageEntry):
        return entry.message
    if isinstance(entry, BranchSummaryEntry):
        return UserMessage(content=_BRANCH.format(whole_characters(entry.summary)), source="branch")
    return None
