"""Conversion of conversations to the Messages API: alternating roles, and one message per batch of tool results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sideband.messages import (
    AssistantMessage,
    Attachment,
    AudioPart,
    ImagePart,
    ImageUrlPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
)
from sideband_model_client import InputUnsupported, file_text

_PDF = "application/pdf"
_INVALID_ID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_ID_LENGTH = 64
_EARLIER_OMITTED = "(Earlier messages are omitted.)"
_NO_OUTPUT = "(no output)"

Block = dict[str, Any]


def conversation(messages: Iterable[Message], *, model: str, thoughts: bool) -> list[dict[str, Any]]:
    """Convert messages to the format of the API.

    Args:
        messages: the messages, oldest first.
        model: the recipient, as ``provider:model``. Signed thinking blocks are sent only to the model they come from.
        thoughts: whether to send thinking blocks at all.

    Raises:
        InputUnsupported: if the API does not support an attachment.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _assistant_blocks(message, model=model, thoughts=thoughts)
        elif isinstance(message, ToolResultMessage):
            role, blocks = "user", [_result(message, model)]
        else:
            role, blocks = "user", _content_blocks(message.content, model)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _EARLIER_OMITTED}]})
    for turn in turns:
        if turn["role"] == "user":
            # Tool results must come before other content; the sort is stable.
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def has_thoughts(turns: Iterable[dict[str, Any]]) -> bool:
    """Return whether a converted conversation contains thinking blocks."""
    return any(block["type"] in {"thinking", "redacted_thinking"} for turn in turns for block in turn["content"])


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
