"""Conversion of conversations to the Messages API: alternating roles, and one message per batch of tool results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from attrs import define, field
from sideband.messages import (
    AssistantMessage,
    Attachment,
    AudioPart,
    Fragment,
    ImagePart,
    ImageUrlPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    fragment,
)
from sideband_model_client import InputUnsupported, encoded, file_text

CACHED = {"type": "ephemeral"}
"""Marks the end of a prefix that later requests share."""

_PDF = "application/pdf"
_INVALID_ID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_ID_LENGTH = 64
_EARLIER_OMITTED = "(Earlier messages are omitted.)"
_NO_OUTPUT = "(no output)"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})

Block = dict[str, Any]


class _Sent(Fragment):
    """What a message keeps of the last request: how it was sent, and the text of the turn that it began.

    Attributes:
        role: the role of its turn; empty if nothing of the message is sent.
        has_thoughts: whether it has thinking blocks.
        turn: the fragment of the turn that begins with this message, with what else it depends on.
    """

    __slots__ = ("has_thoughts", "role", "turn")

    def __init__(self, role: str, blocks: Sequence[Block]) -> None:
        super().__init__(b"")
        self.role = role if blocks else ""
        self.has_thoughts = any(block["type"] in _THOUGHTS for block in blocks)
        self.turn: tuple[bool, Sequence[_Sent], Fragment] | None = None


@define(eq=False)
class SentTurn:
    """Consecutive messages of one role, which the API receives as one.

    Attributes:
        role: ``user`` or ``assistant``.
        added: blocks that follow those of its messages.
        marked: whether it ends the prefix that a later request shares.
    """

    role: str
    added: list[Block] = field(factory=list)
    marked: bool = False
    _messages: list[Message] = field(factory=list)
    _sent: list[_Sent] = field(factory=list)

    @property
    def has_results(self) -> bool:
        """Whether it has results of tools."""
        return any(isinstance(one, ToolResultMessage) for one in self._messages)

    @property
    def has_thoughts(self) -> bool:
        """Whether it has thinking blocks."""
        return any(one.has_thoughts for one in self._sent)

    def add(self, message: Message, sent: _Sent) -> None:
        """Add a message."""
        self._messages.append(message)
        self._sent.append(sent)

    def fragment(self, model: str, *, thoughts: bool) -> Fragment:
        """Return the turn as it is sent. Its first message keeps it."""
        first = self._sent[0] if self._sent and not self.added else None
        rest = self._sent[1:]
        if first is not None and first.turn is not None and first.turn[:2] == (self.marked, rest):
            return first.turn[2]
        # Tool results must come before other content; the sort is stable.
        ordered = sorted(self._messages, key=lambda one: not isinstance(one, ToolResultMessage))
        blocks = [block for one in ordered for block in _blocks(model, thoughts, one)] + self.added
        if self.marked:
            blocks[-1] = {**blocks[-1], "cache_control": CACHED}
        found = Fragment(encoded({"role": self.role, "content": blocks}))
        if first is not None:
            first.turn = self.marked, rest, found
        return found


def conversation(messages: Iterable[Message], *, model: str, thoughts: bool) -> list[SentTurn]:
    """Group messages as the API receives them.

    Args:
        messages: the messages, oldest first.
        model: the recipient, as ``provider:model``. Signed thinking blocks are sent only to the model they come from.
        thoughts: whether to send thinking blocks at all.

    Raises:
        InputUnsupported: if the API does not support an attachment.
    """
    turns: list[SentTurn] = []
    form, build = ("anthropic", model, thoughts), partial(_sent, model, thoughts)
    for message in messages:
        sent = fragment(message, form, build)
        if not sent.role:
            continue
        if not turns or turns[-1].role != sent.role:
            turns.append(SentTurn(sent.role))
        turns[-1].add(message, sent)
    if turns and turns[0].role == "assistant":
        turns.insert(0, SentTurn("user", [{"type": "text", "text": _EARLIER_OMITTED}]))
    return turns


def has_thoughts(turns: Iterable[SentTurn]) -> bool:
    """Return whether a conversation contains thinking blocks."""
    return any(turn.has_thoughts for turn in turns)


def _sent(model: str, thoughts: bool, message: Message) -> _Sent:
    role = "assistant" if isinstance(message, AssistantMessage) else "user"
    return _Sent(role, _blocks(model, thoughts, message))


def _blocks(model: str, thoughts: bool, message: Message) -> list[Block]:
    if isinstance(message, AssistantMessage):
        return _assistant_blocks(message, model=model, thoughts=thoughts)
    return (
        [_result(message, model)] if isinstance(message, ToolResultMessage) else _content_blocks(message.content, model)
    )


def _assistant_blocks(message: AssistantMessage, *, model: str, thoughts: bool) -> list[Block]:
    if message.stop == "error":
        return []
    own = thoughts and message.model in {"", model}
    blocks = [_part(part) for part in message.content if own or not isinstance(part, ThinkingPart)]
    return [block for block in blocks if block is not None]


def _part(part: TextPart | ThinkingPart | ToolCallPart) -> Block | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, ToolCallPart):
        return {"type": "tool_use", "id": _id(part.id), "name": part.name, "input": dict(part.arguments)}
    if part.signature is None:
        return None
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _result(message: ToolResultMessage, model: str) -> Block:
    content = _content_blocks(message.content, model) or [{"type": "text", "text": _NO_OUTPUT}]
    block = {"type": "tool_result", "tool_use_id": _id(message.call), "content": content}
    return {**block, "is_error": True} if message.is_error else block


def _content_blocks(parts: Sequence[TextPart | Attachment], model: str) -> list[Block]:
    return [_content_block(part, model) for part in parts if not isinstance(part, TextPart) or part.text.strip()]


def _content_block(part: TextPart | Attachment, model: str) -> Block:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImageUrlPart):
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    if isinstance(part, ImagePart):
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
    provider, _, name = model.partition(":")
    if isinstance(part, AudioPart):
        hint = "send a transcript, or use a model of another provider that supports audio"
        raise InputUnsupported(provider, name, "audio: the Messages API does not support it", hint)
    if part.media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": part.data}
    elif (text := file_text(part)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        problem = f"`{part.name}`: the Messages API takes PDFs and text, not {part.media_type}"
        raise InputUnsupported(provider, name, problem, "convert the file to a PDF or to text")
    return {"type": "document", "source": source, "title": part.name}


def _id(call: str) -> str:
    """Return the call id in the characters that the API allows. Ids from other providers may contain others."""
    plain = _INVALID_ID_CHARACTER.sub("_", call)
    if plain == call and len(call) <= _MAX_ID_LENGTH:
        return call
    return f"{plain[:40]}_{hashlib.sha256(call.encode()).hexdigest()[:16]}"
