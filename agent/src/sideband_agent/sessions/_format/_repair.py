"""Convert records to a consistent tree. Damage is repaired in memory and reported; stored records never change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from ._entries import CompactionEntry, Entry, LabelEntry, LeafEntry, entry_of

_REFERENCES = ("id", "parent", "target", "first_kept")


@define
class EntryReader:
    """A reader of the records of a session, in the order in which they were stored.

    The parent of an entry is always an earlier entry, whatever the record contains, so there are no cycles. Repairs are
    deterministic, so repaired ids are stable.

    Attributes:
        leaf: the entry that the next one follows.
        notices: what was repaired, and where.
    """

    leaf: str | None = None
    notices: list[str] = field(factory=list)
    # Maps an id in the records to the entry that its children follow.
    _places: dict[str, str | None] = field(factory=dict, init=False)
    _ids: dict[str, str] = field(factory=dict, init=False)
    _taken: set[str] = field(factory=set, init=False)
    _copies: Counter[str] = field(factory=Counter, init=False)

    def take(self, record: Mapping[str, Any], where: str) -> Entry | None:
        """Return the entry of a record, repaired if necessary, or ``None`` if the record is not an entry.

        Args:
            record: the record.
            where: the location shown in notices, such as ``entry 7``.
        """
        if record.get("type") == "session":
            self.notices.append(f"{where} was skipped: duplicate header")
            return None
        try:
            entry, problem = entry_of(record)
        except ValueError as error:
            self.notices.append(f"{where} was skipped: {error}")
            return None
        if problem:
            self.notices.append(f"{where} is stored but not understood by this version: {problem}")
        changes = self._changes(entry, where)
        repaired = entry.model_copy(update=changes) if changes else entry
        self.follow(repaired, entry.id)
        return repaired

    def follow(self, entry: Entry, called: str | None = None) -> None:
        """Make an entry the leaf.

        Args:
            entry: the entry.
            called: its id in the records, if it was replaced.
        """
        self._taken.add(entry.id)
        # children of a rewind follow its target
        self.leaf = entry.target if isinstance(entry, LeafEntry) else entry.id
        self._places[called or entry.id] = self.leaf
        self._ids[called or entry.id] = entry.id

    def _changes(self, entry: Entry, where: str) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if entry.id in self._taken:
            changes["id"] = self._free_id(entry.id)
            self.notices.append(f"{where} reuses the id `{entry.id}`; replaced by `{changes['id']}`")
        if entry.parent is not None:
            changes["parent"] = self._known(entry.parent, where, "parent")
        if isinstance(entry, LeafEntry) and entry.target is not None:
            changes["target"] = self._known(entry.target, where, "target")
        if isinstance(entry, LabelEntry):
            changes["target"] = self._ids.get(entry.target, entry.target)
        if isinstance(entry, CompactionEntry) and entry.first_kept is not None:
            changes["first_kept"] = self._ids.get(entry.first_kept, entry.first_kept)
            if entry.first_kept not in self._ids:
                self.notices.append(f"{where}: `first_kept` is unknown: `{entry.first_kept}`; all messages are kept")
        return {name: value for name, value in changes.items() if value != getattr(entry, name)}

    def _known(self, entry: str, where: str, reference: str) -> str | None:
        if entry in self._places:
            return self._places[entry]
        used = f"`{self.leaf}`" if self.leaf else "the beginning"
        self.notices.append(f"{where}: `{reference}` is unknown: `{entry}`; replaced by {used}")
        return self.leaf

    def _free_id(self, taken: str) -> str:
        while True:
            self._copies[taken] += 1
            found = f"{taken[:48]}-{self._copies[taken] + 1}"
            if found not in self._taken:
                return found


def repaired(record: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """Return the record of an entry that was read from ``record`` and may have been repaired."""
    changed = {
        name: value
        for name in _REFERENCES
        if (value := getattr(entry, name, None)) != record.get(name) and hasattr(entry, name)
    }
    return {**record, **changed}
