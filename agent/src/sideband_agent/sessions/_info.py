"""The summary of a session for lists. It is updated incrementally and can be rebuilt from the records."""

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
    """The summary of a session for lists.

    Attributes:
        id: its id.
        name: the name that the user gave it.
        channel: the last channel of its user.
        folder: its working directory.
        parent: the session that it was forked from.
        created, updated: in UTC.
        entries: the number of entries.
        messages: the number of messages.
        first: the beginning of the user's first message.
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
        """Whether it has neither messages nor a name."""
        return not self.messages and self.name is None

    @property
    def path(self) -> Path | None:
        """Its working directory."""
        return None if self.folder is None else Path(self.folder)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as data."""
        return asdict(self)


def info_of(header: SessionHeader) -> SessionInfo:
    """Return the summary of a session without entries."""
    return SessionInfo(
        id=header.id,
        channel=header.channel,
        folder=header.folder,
        parent=header.parent,
        created=header.time,
        updated=header.time,
    )


def update_info(info: SessionInfo, records: Iterable[Mapping[str, Any]]) -> SessionInfo:
    """Return the summary updated with these records. Damaged ones are ignored."""
    for record in records:
        info = _with(info, record)
    return info


def read_info(value: Mapping[str, Any]) -> SessionInfo | None:
    """Read the result of ``as_dict``. Return ``None`` if it is damaged."""
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
            changes["first"] = _user_text(record)[:_FIRST_CHARACTERS]
    elif kind == "name" and isinstance(name := record.get("name"), str | None):
        changes["name"] = name
    elif kind == "channel" and isinstance(channel := record.get("channel"), str):
        changes["channel"] = channel
    return evolve(info, **changes)


def _user_text(record: Mapping[str, Any]) -> str:
    """Return the text of a user's message in a record, or an empty string."""
    message = record.get("message")
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return ""
    return " ".join(texts_of(message)).strip()


def texts_of(message: Mapping[str, Any]) -> list[str]:
    """Return the texts of a message as data, whatever its form."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [text for part in parts if isinstance(part, Mapping) and isinstance(text := part.get("text"), str)]
