"""JSON made shorter, so that it remains JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from attrs import define, field

from ._graphemes import nearest_boundary

_SHORTEST = 40  # what remains of a value that is cut: enough for a note


class _Number(str):
    """A number as it was written: reading it might change it."""

    __slots__ = ()


def cut_json(text: str, longest: int, *, handle: str | None = None) -> tuple[str, int] | None:
    """A JSON text of at most so many characters, and about how many are missing; ``None`` if it is no JSON.

    White space between values does not count as missing. Of two entries of one name in an object, the last remains.

    Args:
        text: the text.
        longest: characters.
        handle: what the whole text can be read with, named in the note.
    """
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse)
        shrinker = _Shrinker()
        size = shrinker.size(value)
        if size <= longest:
            return _write(value), 0
        written = _fitting(shrinker, value, longest, _note(handle))
    except (ValueError, RecursionError):
        return None
    return written, max(1, size - len(written))


def _fitting(shrinker: _Shrinker, value: Any, longest: int, note: str) -> str:
    room = longest - len(note) - len('"…": "…  …", ')
    while room >= _SHORTEST:
        written = _write(_with_note(shrinker.shrink(value, room), note))
        if len(written) <= longest:
            return written
        room //= 2  # what is nested deeply has a least length
    return _write(_with_note(type(value)(), note))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _note(handle: str | None) -> str:
    where = "" if handle is None else f"; the whole is the output `{handle}`"
    return f"parts marked with … are left out{where}"


def _with_note(kept: Any, note: str) -> Any:
    if isinstance(kept, list):
        return [*kept, f"… {note} …"]
    name = "…"
    while name in kept:
        name += "…"
    return {**kept, name: note}


def _write(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return _write_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write_text(name)}: {_write(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write, value)) + "]"
    return {True: "true", False: "false", None: "null"}[value]


def _write_text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(text)
    return written


@define
class _Shrinker:
    """Knows how long each list and each object is when written, so that each is measured once."""

    _sizes: dict[int, int] = field(factory=dict)

    def size(self, value: Any) -> int:
        """How many characters a value has when written."""
        if not isinstance(value, dict | list):
            return len(_write(value))
        size = self._sizes.get(id(value))
        if size is None:
            size = self._sizes[id(value)] = 2 + sum(self._parts(value))
        return size

    def _parts(self, value: dict[str, Any] | list[Any]) -> Iterable[int]:
        if isinstance(value, list):
            return (self.size(one) + 2 for one in value)
        return (self._entry(name, one) for name, one in value.items())

    def _entry(self, name: str, value: Any) -> int:
        return len(_write_text(name)) + 4 + self.size(value)

    def shrink(self, value: Any, room: int) -> Any:
        """A value that has at most so many characters when written, or about 40 where the room is less than that."""
        room = max(room, _SHORTEST)
        if self.size(value) <= room:
            return value
        if isinstance(value, _Number):
            return f"… a number of {len(value):,} digits …"
        if isinstance(value, str):
            return _shrink_text(value, room)
        return self._shrink_list(value, room) if isinstance(value, list) else self._shrink_object(value, room)

    def _shrink_list(self, items: list[Any], room: int) -> list[Any]:
        """Its head and its tail; of a list whose items are long, the beginning of the first and of the last."""
        if len(items) == 1:
            return [self.shrink(items[0], room - 4)]
        half = (room - _SHORTEST) // 2
        if half < _SHORTEST:
            return [f"… {len(items):,} items …"]
        head = self._count(items, half)
        first = items[:head] or [self.shrink(items[0], half)]
        rest = items[len(first) :]
        tail = self._count(reversed(rest), half)
        last = rest[len(rest) - tail :] or [self.shrink(one, half) for one in rest[-1:]]
        missing = len(rest) - len(last)
        return [*first, *([f"… {missing:,} items …"] if missing else []), *last]

    def _count(self, items: Iterable[Any], room: int) -> int:
        return _how_many((self.size(one) + 2 for one in items), room)

    def _shrink_object(self, entries: dict[str, Any], room: int) -> dict[str, Any]:
        """All of its names, the longest values cut; of an object with too many entries, the first and the last."""
        kept = self._first_and_last(entries, room - _SHORTEST)
        missing = len(entries) - len(kept)
        fixed = sum(self._entry(name, one) - self.size(one) for name, one in kept.items())
        share = _share((self.size(one) for one in kept.values()), room - fixed - (_SHORTEST if missing else 2))
        shrunk = {name: self.shrink(one, share) for name, one in kept.items()}
        if missing:
            shrunk[_free_name(shrunk)] = f"{missing:,} entries"
        return shrunk

    def _first_and_last(self, entries: dict[str, Any], room: int) -> dict[str, Any]:
        least = [
            self._entry(name, one) - self.size(one) + min(self.size(one), _SHORTEST) for name, one in entries.items()
        ]
        if sum(least) <= room:
            return entries
        head = _how_many(least, room // 2)
        tail = _how_many(reversed(least[head:]), room // 2)
        names = list(entries)
        return {name: entries[name] for name in (*names[:head], *names[len(names) - tail :])}


def _how_many(sizes: Iterable[int], room: int) -> int:
    """How many of the first of these fit."""
    count = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        count += 1
    return count


def _free_name(entries: Mapping[str, Any]) -> str:
    name = "… left out"
    while name in entries:
        name += "…"
    return name


def _share(sizes: Iterable[int], room: int) -> int:
    """How long each value may be so that all of them fit: short ones leave their rest to the long ones."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        share = room // (len(ordered) - index)
        if size > share:
            return max(share, _SHORTEST)
        room -= size
    return max(room, _SHORTEST)


def _shrink_text(text: str, room: int) -> str:
    """Its head and its tail, by what they have when written."""
    written = len(_write_text(text))
    length = len(text) * room // written
    while True:
        keep = max(0, length - _SHORTEST)
        head, tail = keep - keep // 2, keep // 2
        start, end = nearest_boundary(text, head, -1), nearest_boundary(text, len(text) - tail, 1)
        shrunk = f"{text[:start]}… {end - start:,} characters …{text[end:]}"
        over = len(_write_text(shrunk)) - room
        if over <= 0 or not keep:
            return shrunk
        length -= max(1, over // 6)
