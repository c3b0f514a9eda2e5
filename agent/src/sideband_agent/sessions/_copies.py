"""Build sessions from a part of another session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import frozen
from sideband.active_skills import ALLOWED_KEY

from ._format import Entry, EntryReader, LabelEntry, NameEntry, SessionHeader, new_id, now, record_of, repaired
from ._tree import EntryTree

Position = Literal["at", "before"]
"""Whether a copy ends at an entry or at its parent."""


@frozen
class Copy:
    """The content of a new session.

    Attributes:
        header: its header.
        records: the records of its entries.
        notices: what was damaged and how it was repaired.
    """

    header: SessionHeader
    records: list[dict[str, Any]]
    notices: tuple[str, ...] = ()


def copy_of_path(tree: EntryTree, records: Iterable[Mapping[str, Any]], entry: str | None, position: Position) -> Copy:
    """Copy the path to an entry as a new session, with the labels of its entries and without the name.

    Args:
        tree: the session.
        records: its entries as they are stored.
        entry: the id of the entry; the current leaf if ``None``.
        position: whether the copy includes the entry.

    Raises:
        EntryNotFound: if the entry does not exist.
    """
    path = tree.path(entry)
    if position == "before":
        path = path[:-1]
    wanted = {one.id for one in path}
    reader = EntryReader()
    read = [(reader.take(record, ""), record) for record in records]
    copied = [repaired(record, one) for one, record in read if one is not None and one.id in wanted]
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


def without_approvals(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a file without what pre-approves tools: only the user of this host can grant that."""
    return [_without_approvals(record) for record in records]


def _without_approvals(record: Mapping[str, Any]) -> dict[str, Any]:
    message = record.get("message")
    metadata = message.get("metadata") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(metadata, Mapping) or ALLOWED_KEY not in metadata:
        return dict(record)
    kept = {name: value for name, value in metadata.items() if name != ALLOWED_KEY}
    return {**record, "message": {**message, "metadata": kept}}


def _afterwards(tree: EntryTree, path: tuple[Entry, ...]) -> list[dict[str, Any]]:
    """Return records that set the final labels of the path's entries and remove the session's name."""
    labels = {one.target: one.label for one in path if isinstance(one, LabelEntry)}
    named = any(isinstance(one, NameEntry) for one in path)
    bodies: list[Entry] = [
        LabelEntry(target=one.id, label=tree.labels.get(one.id))
        for one in path
        if tree.labels.get(one.id) != labels.get(one.id)
    ]
    if named:
        bodies.append(NameEntry(name=None))
    parent, records = path[-1].id if path else None, []
    for body in bodies:
        entry = body.model_copy(update={"id": new_id(), "parent": parent, "time": now()})
        records.append(record_of(entry))
        parent = entry.id
    return records
