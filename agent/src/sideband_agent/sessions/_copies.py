"""Sessions that are made of a part of another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import frozen

from ._format import Entry, EntryReader, LabelEntry, NameEntry, SessionHeader, mended, new_id, now, record_of
from ._tree import SessionTree

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
