"""How many tokens a conversation has: what the provider counted, and an estimate of what came after."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sideband.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart

CHARACTERS_PER_TOKEN = 4
_IMAGE_TOKENS = 1_200


def estimate(message: Message) -> int:
    """About how many tokens a message has: a quarter of its characters, and 1,200 for an image; at least 1.

    Example:
        >>> from sideband.messages import UserMessage
        >>> estimate(UserMessage(content="hello, world"))
        3
    """
    characters = sum(_characters(part) for part in message.content)
    return max(1, -(-characters // CHARACTERS_PER_TOKEN))


def context_tokens(messages: Sequence[Message], *, trusted_from: int = 0, overhead: int = 0) -> int:
    """About how many tokens a model would read.

    Args:
        messages: the conversation, oldest first.
        trusted_from: the index of the first message whose usage counts the conversation as it is now. What was said
            before the last compaction counts messages that are not there any more.
        overhead: tokens of what is sent besides the messages: the system prompt and the tools. Counts only while no
            provider has counted.

    Returns:
        What the last answer's provider counted, and an estimate of the messages after it.
    """
    for index in range(len(messages) - 1, max(trusted_from, 0) - 1, -1):
        counted = _counted(messages[index])
        if counted:
            return counted + sum(map(estimate, messages[index + 1 :]))
    return overhead + sum(map(estimate, messages))


def _counted(message: Message) -> int:
    if message.role != "assistant" or message.stop in ("error", "aborted"):
        return 0
    return message.usage.context


def _characters(part: TextPart | ImagePart | ThinkingPart | ToolCallPart) -> int:
    if isinstance(part, ImagePart):
        return _IMAGE_TOKENS * CHARACTERS_PER_TOKEN
    if isinstance(part, ToolCallPart):
        return len(part.name) + len(json.dumps(part.arguments, ensure_ascii=False))
    if isinstance(part, ThinkingPart) and part.redacted:
        return len(part.signature or "")
    return len(part.text)
