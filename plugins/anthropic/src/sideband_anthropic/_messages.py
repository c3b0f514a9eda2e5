"""Conversations, as the Messages API wants them: roles in turn, and each batch of results in one message."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sideband.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
)

_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_ID = 64
_LEFT_OUT = "(What came before is left out.)"
_NOTHING = "(no output)"

Block = dict[str, Any]


def conversation(messages: Iterable[Message], *, model: str, thoughts: bool) -> list[dict[str, Any]]:
    """The messages, in the form of the API.

    Args:
        messages: oldest first.
        model: ``provider:model``, the only one to whom its signed thoughts are given back.
        thoughts: whether they are.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            role, blocks = "assistant", _said(message, model=model, thoughts=thoughts)
        elif isinstance(message, ToolResultMessage):
            role, blocks = "user", [_result(message)]
        else:
            role, blocks = "user", _shown(message.content)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _LEFT_OUT}]})
    for turn in turns:
        if turn["role"] == "user":
            # Results come before whatever else is said with them; the sort keeps their order.
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def has_thoughts(turns: Iterable[dict[str, Any]]) -> bool:
    """Whether a conversation in the form of the API gives thoughts back."""
    return any(block["type"] in {"thinking", "redacted_thinking"} for turn in turns for block in turn["content"])


def _said(message: AssistantMessage, *, model: str, thoughts: bool) -> list[Block]:
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


def _result(message: ToolResultMessage) -> Block:
    content = _shown(message.content) or [{"type": "text", "text": _NOTHING}]
    block = {"type": "tool_result", "tool_use_id": _id(message.call), "content": content}
    return {**block, "is_error": True} if message.is_error else block


def _shown(parts: Sequence[TextPart | ImagePart]) -> list[Block]:
    return [
        {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
        if isinstance(part, ImagePart)
        else {"type": "text", "text": part.text}
        for part in parts
        if isinstance(part, ImagePart) or part.text.strip()
    ]


def _id(call: str) -> str:
    """The id of a call, in the characters that the API allows. Ids of other providers may have others."""
    plain = _STRANGE.sub("_", call)
    if plain == call and len(call) <= _LONGEST_ID:
        return call
    return f"{plain[:40]}_{hashlib.sha256(call.encode()).hexdigest()[:16]}"
