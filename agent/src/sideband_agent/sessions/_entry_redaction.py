"""Remove secrets from entries, and nothing that their format defines: short secrets occur in ids and times by chance.

An entry whose id, time or kind was replaced could not be read again, and its message would be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from sideband.messages import AudioPart, FilePart, ImagePart

from ._format import CustomMessageEntry, Entry, MessageEntry, record_of

Redact = Callable[[Any], Any]
"""Removes secrets from plain data."""

_BINARY = (ImagePart, AudioPart, FilePart)
# Ids, times and numbers that the host made, and names from fixed sets. Other ids, such as those of tool calls, are text
# of models.
_OF_ENTRIES = frozenset(
    {
        *("id", "parent", "time", "type", "run", "step", "status", "resume_at", "seed"),
        *("first_kept", "carried", "tokens_before", "from_", "target"),
    }
)
_OF_MESSAGES = frozenset({"type", "role", "stop", "usage"})


def redacted(entry: Entry, redact: Redact) -> tuple[Entry, dict[str, Any]]:
    """Return an entry without secrets, to be stored and shown to models, and its record.

    The data of images, recordings and files is not changed: the agent refuses attachments with secrets.
    """
    record = record_of(entry)
    if not _is_binary(entry) and redact(record) == record:
        return entry, record
    clean = _cleaned(entry, redact, _OF_ENTRIES)
    return clean, record_of(clean)


def _is_binary(entry: Entry) -> bool:
    """Return whether an entry is a message with an image, a recording or a file."""
    return isinstance(entry, MessageEntry | CustomMessageEntry) and any(
        isinstance(part, _BINARY) for part in entry.message.content
    )


def _cleaned(value: Any, redact: Redact, fixed: frozenset[str] = _OF_MESSAGES) -> Any:
    if isinstance(value, tuple):
        return tuple(_cleaned(one, redact) for one in value)
    if not isinstance(value, BaseModel):
        return redact(value)
    free = ("name",) if isinstance(value, _BINARY) else type(value).model_fields.keys() - fixed
    found = {name: one for name in free if (one := getattr(value, name, None)) is not None}
    return value.model_copy(update={name: _cleaned(one, redact) for name, one in found.items()})
