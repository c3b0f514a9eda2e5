"""Records become entries that fit together. What is damaged is mended in memory, and said; nothing is rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from ._entries import CompactionEntry, Entry, LabelEntry, LeafEntry, entry_of

_REFERENCES = ("id", "parent", "target", "first_kept")


@define
class EntryReader:
    """Takes the records of a session, in the order in which they were stored.

    An entry follows one that was stored before it, whatever the record says: so there are no cycles. The same records
    are mended in the same way each time, so that ids stay what they are.

    Attributes:
        leaf: the entry that the next one follows.
        notices: what was mended, and where.
    """

    leaf: str | None = None
    notices: list[str] = field(factory=list)
    # What follows an entry with this id in the records follows that one.
    _places: dict[str, str | None] = field(factory=dict, init=False)
    _ids: dict[str, str] = field(factory=dict, init=False)
    _taken: set[str] = field(factory=set, init=False)
    _copies: Counter[str] = field(factory=Counter, init=False)

    def take(self, record: Mapping[str, Any], where: str) -> Entry | None:
        """The entry that a record holds, mended; ``None`` if it holds none.

        Args:
            record: the record.
            where: what notices call its place: ``entry 7``.
        """
        if record.get("type") == "session":
            self.notices.append(f"{where} is left out: it is another header")
            return None
        try:
            entry, problem = entry_of(record)
        except ValueError as error:
            self.notices.append(f"{where} is left out: {error}")
            return None
        if problem:
            self.notices.append(f"{where} is kept, but this version does not understand it: {problem}")
        changes = self._changes(entry, where)
        mended = entry.model_copy(update=changes) if changes else entry
        self.follow(mended, entry.id)
        return mended

    def follow(self, entry: Entry, called: str | None = None) -> None:
        """Note that an entry is the newest one.

        Args:
            entry: the entry.
            called: its id in the records, if that is another one.
        """
        self._taken.add(entry.id)
        # What follows an entry that goes back follows the one that it goes back to.
        self.leaf = entry.target if isinstance(entry, LeafEntry) else entry.id
        self._places[called or entry.id] = self.leaf
        self._ids[called or entry.id] = entry.id

    def _changes(self, entry: Entry, where: str) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if entry.id in self._taken:
            changes["id"] = self._free_id(entry.id)
            self.notices.append(f"{where} has the id `{entry.id}` of an earlier one: `{changes['id']}` stands for it")
        if entry.parent is not None:
            changes["parent"] = self._known(entry.parent, where, "follows")
        if isinstance(entry, LeafEntry) and entry.target is not None:
            changes["target"] = self._known(entry.target, where, "goes back to")
        if isinstance(entry, LabelEntry):
            changes["target"] = self._ids.get(entry.target, entry.target)
        if isinstance(entry, CompactionEntry) and entry.first_kept is not None:
            changes["first_kept"] = self._ids.get(entry.first_kept, entry.first_kept)
            if entry.first_kept not in self._ids:
                self.notices.append(f"{where} keeps all from `{entry.first_kept}` on, which is not there: all is kept")
        return {name: value for name, value in changes.items() if value != getattr(entry, name)}

    def _known(self, told: str, where: str, how: str) -> str | None:
        if told in self._places:
            return self._places[told]
        stands = f"`{self.leaf}`" if self.leaf else "the beginning"
        self.notices.append(f"{where} {how} `{told}`, which is not there: {stands} stands for it")
        return self.leaf

    def _free_id(self, taken: str) -> str:
        while True:
            self._copies[taken] += 1
            found = f"{taken[:48]}-{self._copies[taken] + 1}"
            if found not in self._taken:
                return found


def mended(record: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """The record for an entry that was read from ``record``, and maybe mended."""
    changed = {
        name: value
        for name in _REFERENCES
        if (value := getattr(entry, name, None)) != record.get(name) and hasattr(entry, name)
    }
    return {**record, **changed}
