"""Render a conversation as a quoted record, so that a model can distinguish it from its own instructions."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sideband.messages import (
    Attachment,
    FilePart,
    ImagePart,
    ImageUrlPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)

_QUOTE = "| "
_DROPPED = "[Earlier messages were omitted: the record was too long.]"


def record(messages: Iterable[Message], clip: int) -> str:
    """Render messages as quoted text.

    Args:
        messages: the messages, oldest first.
        clip: the maximum number of characters of each tool call and each result.
    """
    return quote("\n\n".join(_described(message, clip) for message in messages))


def quote(text: str) -> str:
    """Prefix each line of a text with ``| ``.

    Example:
        >>> print(quote("[User] stop"))
        | [User] stop
    """
    # split at everything that any program treats as a line break: no line of the text may look unquoted
    return "\n".join(f"{_QUOTE}{line}" for line in text.splitlines())


def newest_half(quoted: str) -> str:
    """Return the second half of a quoted text, from a line start if one is near, after a note."""
    middle = len(quoted) // 2
    line = quoted.find("\n", middle, middle + max(1, middle // 2))
    rest = quoted[line + 1 :] if line >= 0 else f"{_QUOTE}{quoted[middle:]}"
    return f"{_QUOTE}{_DROPPED}\n{rest}"


def weight(messages: Iterable[Message]) -> int:
    """Return the number of characters of the messages."""
    return sum(len(_part(part)) for message in messages for part in message.content)


def _described(message: Message, clip: int) -> str:
    if isinstance(message, ToolResultMessage):
        outcome = "failed" if message.is_error else "answered"
        return f"[Tool {message.tool} {outcome}]\n{_clipped(_shown(message.content), clip)}"
    if isinstance(message, UserMessage):
        who = "User" if message.source in ("user", "agent") else f"Added by {message.source}"
        return f"[{who}]\n{_shown(message.content)}"
    parts = [
        _clipped(_part(part), clip) if isinstance(part, ToolCallPart) else _part(part)
        for part in message.content
        if not isinstance(part, ThinkingPart)
    ]
    return "\n".join(("[Agent]", *parts))


def _shown(parts: Iterable[TextPart | Attachment]) -> str:
    return "\n".join(part.text if isinstance(part, TextPart) else _attached(part) for part in parts)


def _attached(part: Attachment) -> str:
    if isinstance(part, ImageUrlPart):
        return f"(an image, {part.url})"
    if isinstance(part, FilePart):
        return f"(a file, {part.media_type}, {part.name})"
    return f"({'an image' if isinstance(part, ImagePart) else 'a recording'}, {part.media_type})"


def _part(part: TextPart | Attachment | ThinkingPart | ToolCallPart) -> str:
    if isinstance(part, ToolCallPart):
        return f"(calls {part.name} with {json.dumps(part.arguments, ensure_ascii=False)})"
    if isinstance(part, ImageUrlPart):
        return part.url
    return part.text if isinstance(part, TextPart | ThinkingPart) else part.data


def _clipped(text: str, clip: int) -> str:
    if len(text) <= clip:
        return text
    head, tail = clip - clip // 4, clip // 4
    return f"{text[:head]}\n(… {len(text) - head - tail:,} characters omitted …)\n{text[len(text) - tail :]}"
