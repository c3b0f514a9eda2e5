"""Shorten JSON so that it remains valid JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from attrs import define, field

from ._graphemes import nearest_boundary

_SHORTEST = 40  # the minimum length of a shortened value: enough for a note


class _Number(str):
    """A number as it was written: parsing it might change it."""

    __slots__ = ()


def cut_json(text: str, longest: int, *, handle: str | None = None) -> tuple[str, int] | None:
    """Shorten a JSON text. Return it with the approximate number of omitted characters, or ``None`` if it is not JSON.

    White space between values is not counted. Of duplicate names in an object, the last one remains.

    Args:
        text: the text.
        longest: the maximum number of characters.
        handle: the handle of the full text, named in the note.
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
        room //= 2  # deeply nested values have a minimum length
    return _write(_with_note(type(value)(), note))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _note(handle: str | None) -> str:
    where = "" if handle is None else f"; the full text is the output `{handle}`"
    return f"parts marked with … were omitted{where}"


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
    except UnicodeEncodeError:  # a lone surrogate, which needs an escape
        return json.dumps(text)
    return written


@define
class _Shrinker:
    """A shortener that caches the written length of each list and object, so that each is measured once."""

    _sizes: dict[int, int] = field(factory=dict)

    def size(self, value: Any) -> int:
        """Return the number of characters of a value when written."""
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
        """Shorten a value to at most ``room`` characters when written, or to about 40 if ``room`` is smaller."""
        room = max(room, _SHORTEST)
        if self.size(value) <= room:
            return value
        if isinstance(value, _Number):
            return f"… a number of {len(value):,} digits …"
        if isinstance(value, str):
            return _shrink_text(value, room)
        return self._shrink_list(value, room) if isinstance(value, list) else self._shrink_object(value, room)

    def _shrink_list(self, items: list[Any], room: int) -> list[Any]:
        """Keep the head and the tail; if the items are long, keep the beginning of the first and of the last."""
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
        """Keep all names and shorten the longest values; of too many entries, keep the first and last ones."""
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
    """Return how many leading sizes fit into ``room``."""
    count = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        count += 1
    return count


def _free_name(entries: Mapping[str, Any]) -> str:
    name = "… omitted"
    while name in entries:
        name += "…"
    return name


def _share(sizes: Iterable[int], room: int) -> int:
    """Return the maximum length per value so that all fit: short values leave their rest to long ones."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        share = room // (len(ordered) - index)
        if size > share:
            return max(share, _SHORTEST)
        room -= size
    return max(room, _SHORTEST)


def _shrink_text(text: str, room: int) -> str:
    """Keep the head and the tail, measured by their written length."""
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
