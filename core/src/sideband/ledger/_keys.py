"""The idempotency keys of the ledger: which effect used a key last.

The keys of the newest lines are in memory, those of all older lines in the index. Lines that other hosts have written
are read when a key is looked up. Only the positions of lines are kept. The keys of a small ledger are all in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from ._entries import EffectRecord
from ._errors import LedgerIndexFailed
from ._index import Index, Row
from ._lines import LineInvalid, hashed_part
from ._query import record_at
from ._segments import Mark, lines_from, size_from

UNDO = "undo:"
"""The prefix of the keys of undo steps, which no other effect may use. All principals share these keys, because an
effect is undone once."""
# Reading so many bytes takes about a millisecond.
_MAX_BYTES = 64 * 1024
_MAX_KEYS = 10_000


class KeysBehind(Exception):
    """Too many lines have not been read, or the index cannot be used.

    Args:
        damaged: whether the index must be rebuilt.
    """

    def __init__(self, *, damaged: bool = False) -> None:
        super().__init__()
        self.damaged = damaged


@define
class KeyTable:
    """The keys of a ledger. Use it on the event loop only.

    Attributes:
        behind: the position after the last line that was read; ``None`` if that is the head of the chain.
    """

    folder: Path
    behind: Mark | None = field(factory=Mark)
    _start: Mark = field(factory=Mark)  # of the lines whose keys are in memory
    _intents: dict[tuple[str, str], tuple[str, Mark]] = field(factory=dict)
    _outcomes: dict[str, Mark] = field(factory=dict)
    _index: Index | None = None

    def gains_from(self, index: Index) -> bool:
        """Return whether to use the index: many keys are in memory, or lines that it contains were not read."""
        if self.behind is not None and self.behind < index.position():
            return True
        return len(self._intents) + len(self._outcomes) > _MAX_KEYS

    def add(self, words: Sequence[str], place: Mark) -> None:
        """Add a line about an effect with a key: its effect, key and principal, or for an outcome its effect only."""
        effect, *rest = words
        if rest:
            self._intents[_name(*rest)] = (effect, place)
        else:
            self._outcomes[effect] = place

    def read(self) -> None:
        """Read the lines that were not read yet.

        Raises:
            KeysBehind: if that would take too long.
        """
        if self.behind is None:
            return
        if size_from(self.folder, self.behind) > _MAX_BYTES:
            raise KeysBehind
        for segment, start, raw in lines_from(self.folder, self.behind.segment, self.behind.offset):
            self.behind = Mark(segment, start + len(raw) + 1)
            if b'"key":' in raw and (words := _words(raw)):
                self.add(words, Mark(segment, start))

    def find(self, key: str, principal: str) -> EffectRecord | None:
        """Return the record of the last effect with this key. All lines must have been read.

        Raises:
            KeysBehind: if the index lacks lines that are not in memory, or cannot be used.
        """
        name = _name(key, principal)
        if (found := self._intents.get(name)) is not None:
            row: Row | None = Row(found[0], (found[1],))
        else:
            row = None if self._start == Mark() else self._indexed(*name)
        if row is None:
            return None
        if (last := self._outcomes.get(row.effect)) is not None:
            row = Row(row.effect, (row.places[0], last))
        try:
            return record_at(self.folder, row)
        except sqlite3.DatabaseError:
            raise KeysBehind(damaged=True) from None

    def _indexed(self, key: str, principal: str) -> Row | None:
        if self._index is None:
            raise KeysBehind
        try:
            position, row = self._index.latest(key, principal or None)
        except sqlite3.OperationalError:
            raise KeysBehind from None
        except sqlite3.DatabaseError:
            raise KeysBehind(damaged=True) from None
        if position < self._start:
            raise KeysBehind  # it was replaced
        return row

    def use(self, index: Index) -> None:
        """Look up keys in this index from now on, and drop from memory those that it contains."""
        self.close()
        self._index = index
        start = index.position()
        if start < self._start:
            # The ledger was replaced by a shorter one.
            self._intents, self._outcomes, self.behind = {}, {}, start
        self._start = start
        self._intents = {name: found for name, found in self._intents.items() if found[1] >= start}
        self._outcomes = {effect: place for effect, place in self._outcomes.items() if place >= start}
        if self.behind is not None:
            self.behind = max(self.behind, start)

    def close(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()
            self._index = None


def current_index(folder: Path, *, rebuild: bool = False) -> Index:
    """Open the index and update it. This blocks.

    Args:
        folder: the ledger's folder.
        rebuild: whether to delete the index first.

    Raises:
        LedgerIndexFailed: if it could not be built.
    """
    try:
        if not rebuild:
            with suppress(sqlite3.DatabaseError):
                return _updated(folder)
        Index.remove(folder)
        return _updated(folder)
    except (sqlite3.Error, OSError) as error:
        raise LedgerIndexFailed(Index.path(folder), str(error)) from error


def _updated(folder: Path) -> Index:
    index = Index(folder)
    try:
        for _ in index.catch_up():
            pass
        index.hasten()
    except BaseException:
        index.close()
        raise
    return index


def _words(raw: bytes) -> tuple[str, ...]:
    """Return what ``KeyTable.add`` needs of a line. Empty if the line is not about an effect with a key."""
    with suppress(LineInvalid, ValueError, LookupError, TypeError, RecursionError):
        fields = json.loads(hashed_part(raw)[0])
        if fields["kind"] == "intent":
            return str(fields["effect"]), str(fields["key"]), str(fields["origin"]["principal"])
        if fields["kind"] == "outcome" and "key" in fields:
            return (str(fields["effect"]),)
    return ()


def _name(key: str, principal: str) -> tuple[str, str]:
    return key, "" if key.startswith(UNDO) else principal
