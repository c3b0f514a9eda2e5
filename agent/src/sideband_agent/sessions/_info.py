"""What lists say of a session: a sum over its records that can be continued, and be made anew from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen

from ._format import SessionHeader

_FIRST_CHARACTERS = 200


@frozen
class SessionInfo:
    """A session as lists show it.

    Attributes:
        id: its id.
        name: what the user calls it.
        channel: where its user was last.
        folder: its working directory.
        parent: the session that it was forked from.
        created, updated: in UTC.
        entries: how many it has.
        messages: how many of them are messages.
        first: what the user said first, or the beginning of it.
    """

    id: str
    name: str | None = None
    channel: str = "cli"
    folder: str | None = None
    parent: str | None = None
    created: str = ""
    updated: str = ""
    entries: int = 0
    messages: int = 0
    first: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet, and nobody has named it."""
        return not self.messages and self.name is None

    @property
    def path(self) -> Path | None:
        """Its working directory."""
        return None if self.folder is None else Path(self.folder)

    def as_dict(self) -> dict[str, Any]:
        """It as data."""
        return asdict(self)


def info_of(header: SessionHeader) -> SessionInfo:
    """A session that has no entries yet."""
    return SessionInfo(
        id=header.id,
        channel=header.channel,
        folder=header.folder,
        parent=header.parent,
        created=header.time,
        updated=header.time,
    )


def update_info(info: SessionInfo, records: Iterable[Mapping[str, Any]]) -> SessionInfo:
    """The same session with these records more. What is damaged counts for nothing."""
    for record in records:
        info = _with(info, record)
    return info


def read_info(value: Mapping[str, Any]) -> SessionInfo | None:
    """What ``as_dict`` gave; ``None`` if it is damaged."""
    with suppress(TypeError):
        info = SessionInfo(**value)
        counts = (info.entries, info.messages)
        texts = (info.id, info.created, info.updated, info.first, info.channel)
        if all(isinstance(one, int) for one in counts) and all(isinstance(one, str) for one in texts):
            return info
    return None


def _with(info: SessionInfo, record: Mapping[str, Any]) -> SessionInfo:
    kind = record.get("type")
    changes: dict[str, Any] = {"entries": info.entries + 1}
    if isinstance(time := record.get("time"), str) and time:
        changes["updated"] = time
    if kind == "message":
        changes["messages"] = info.messages + 1
        if not info.first:
            changes["first"] = _said(record)[:_FIRST_CHARACTERS]
    elif kind == "name" and isinstance(name := record.get("name"), str | None):
        changes["name"] = name
    elif kind == "channel" and isinstance(channel := record.get("channel"), str):
        changes["channel"] = channel
    return evolve(info, **changes)


def _said(record: Mapping[str, Any]) -> str:
    """What a user says in a record."""
    message = record.get("message")
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return ""
    return " ".join(texts_of(message)).strip()


def texts_of(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message as data, whatever its form."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [text for part in parts if isinstance(part, Mapping) and isinstance(text := part.get("text"), str)]
