"""Frozen models share the sets of their given fields.

Pydantic keeps such a set with each model, of 216 bytes, or 728 for more than four fields: more than half of an entry.
There are few different ones.
"""

from __future__ import annotations

from pydantic import BaseModel
from sideband.messages import AssistantMessage, Message

# The names are those of declared fields, so it stays small. Nothing changes a set: the models are frozen, and a copy of
# a model copies it.
_known: dict[frozenset[str], set[str]] = {}


def share_field_names(model: BaseModel) -> None:
    """Let a frozen model without other fields than the declared ones share the set of its given fields."""
    names = model.__pydantic_fields_set__
    object.__setattr__(model, "__pydantic_fields_set__", _known.setdefault(frozenset(names), names))


def share_message_fields(message: Message) -> None:
    """Let a message and its parts share the sets of their given fields."""
    share_field_names(message)
    for part in message.content:
        share_field_names(part)
    if isinstance(message, AssistantMessage):
        share_field_names(message.usage)
