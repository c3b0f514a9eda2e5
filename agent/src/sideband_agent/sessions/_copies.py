"""Sessions that come from elsewhere, from another session or from a file, and how they are written to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from attrs import frozen

from ._entries import Entry, LabelEntry, NameEntry, new_id, now, record_of
from ._errors import SessionUnreadable
from ._header import VERSION, SessionHeader, header_of, is_session_id
from ._jsonl import Line, dump_line, parse_lines
from ._pi import PI_VERSION, entry_from_pi, entry_to_pi, header_from_pi, header_to_pi, is_pi_header, upgraded
from ._repair import EntryReader, mended
from ._tree import SessionTree

__all__ = ["Copy", "Format", "Position", "copy_of_lines", "copy_of_path", "export_lines"]

Format = Literal["sideband", "pi"]
"""Ours, or version 3 of pi's."""

Position = Literal["at", "before"]
"""Up to an entry, or up to the one that it follows."""


@frozen
class Copy:
    """What becomes a session.

    Attributes:
        header: its header.
        records: its entries, as they are to be stored.
        notices: what was damaged, and how it was mended.
    """

    header: SessionHeader
    records: list[dict[str, Any]]
    notices: tuple[str, ...] = ()


def copy_of_path(
    tree: SessionTree, records: Iterable[Mapping[str, Any]], entry: str | None, position: Position
) -> Copy:
    """The way to an entry as a session of its own, with the marks of its entries, without the name.

    Args:
        tree: the session.
        records: its entries as they are stored.
        entry: the entry; ``None``: where the conversation stands.
        position: whether the entry itself is a part of it.

    Raises:
        EntryNotFound: there is no such entry.
    """
    path = tree.path(entry)
    if position == "before":
        path = path[:-1]
    wanted = {one.id for one in path}
    reader = EntryReader()
    read = [(reader.take(record, ""), record) for record in records]
    copied = [mended(record, one) for one, record in read if one is not None and one.id in wanted]
    copied.extend(_afterwards(tree, path))
    header = SessionHeader(
        id=new_id(),
        time=now(),
        folder=tree.header.folder,
        channel=tree.channel,
        parent=tree.id,
        copied=len(copied),
    )
    return Copy(header, copied)


def copy_of_lines(lines: Iterable[bytes | str]) -> Copy:
    """The session that a file holds, in whichever format.

    Raises:
        SessionUnreadable: it holds none.
    """
    parsed = parse_lines(lines)
    first = next(parsed, None)
    if first is None:
        raise SessionUnreadable("it is empty")
    if first.value is None:
        raise SessionUnreadable(f"its first line is no header: {first.problem}")
    notices: list[str] = []
    found = _intact(parsed, notices)
    if is_pi_header(first.value):
        header = header_from_pi(first.value, new_id())
        return _copy(header, _converted(_pi_version(first.value), found, notices), notices)
    return _copy(_our_header(first.value), ((line.value, _where(line)) for line in found), notices)


def export_lines(tree: SessionTree, records: Iterable[Mapping[str, Any]], format_: Format) -> Iterator[str]:
    """A session as lines, each with its end.

    Args:
        tree: the session.
        records: its entries as they are stored.
        format_: in which format.
    """
    if format_ == "pi":
        yield dump_line(header_to_pi(tree.header))
        yield from (dump_line(entry_to_pi(entry)) for entry in tree.entries)
    else:
        yield dump_line(tree.header.exported())
        yield from (dump_line(record) for record in records)


def _afterwards(tree: SessionTree, path: tuple[Entry, ...]) -> list[dict[str, Any]]:
    """What was said of the path's entries elsewhere in the tree; and that the name is another session's."""
    said = {one.target: one.label for one in path if isinstance(one, LabelEntry)}
    named = any(isinstance(one, NameEntry) for one in path)
    bodies: list[Entry] = [
        LabelEntry(target=one.id, label=tree.labels.get(one.id))
        for one in path
        if tree.labels.get(one.id) != said.get(one.id)
    ]
    if named:
        bodies.append(NameEntry(name=None))
    parent, records = path[-1].id if path else None, []
    for body in bodies:
        entry = body.model_copy(update={"id": new_id(), "parent": parent, "time": now()})
        records.append(record_of(entry))
        parent = entry.id
    return records


def _copy(header: SessionHeader, found: Iterable[tuple[Mapping[str, Any], str]], notices: list[str]) -> Copy:
    reader = EntryReader(notices=notices)
    records = []
    for record, where in found:
        entry = reader.take(record, where)
        if entry is not None:
            records.append(mended(record, entry))
    return Copy(header.model_copy(update={"copied": len(records)}), records, tuple(notices))


@frozen
class _Intact:
    """A line that holds an object."""

    number: int
    value: dict[str, Any]


def _intact(parsed: Iterable[Line], notices: list[str]) -> Iterator[_Intact]:
    for line in parsed:
        if line.value is None:
            notices.append(f"line {line.number} is left out: {line.problem}")
        else:
            if line.problem:
                notices.append(f"line {line.number}: {line.problem}")
            yield _Intact(line.number, line.value)


def _converted(version: int, found: Iterable[_Intact], notices: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(found, start=1):
        record, problem = entry_from_pi(upgraded(version, line.value, number))
        if problem:
            notices.append(f"{_where(line)} is kept, but models do not see it: {problem}")
        yield record, _where(line)


def _where(line: _Intact) -> str:
    return f"line {line.number}"


def _our_header(told: Mapping[str, Any]) -> SessionHeader:
    version = told.get("version")
    if told.get("type") != "session" or not isinstance(version, int):
        raise SessionUnreadable("its first line is no header of a session")
    if version > VERSION:
        raise SessionUnreadable(
            f"it has version {version} of the format, and this is known up to {VERSION}", hint="upgrade sideband"
        )
    usable = dict(told)
    if not is_session_id(told.get("id")):
        usable["id"] = new_id()
    header = header_of(usable)
    if header is None:
        raise SessionUnreadable("its header is damaged")
    return header


def _pi_version(told: Mapping[str, Any]) -> int:
    version = told.get("version", 1)
    if version not in range(1, PI_VERSION + 1):
        raise SessionUnreadable(
            f"it has version {version} of pi's format, and this is known up to {PI_VERSION}",
            hint="upgrade sideband, or export it with the pi that wrote it in an older version",
        )
    return int(version)
