"""Count the tokens of a conversation: the provider's last count, and an estimate for later messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sideband.messages import (
    Attachment,
    AudioPart,
    FilePart,
    ImagePart,
    ImageUrlPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

CHARACTERS_PER_TOKEN = 4
_IMAGE_TOKENS = 1_200
# Providers count pages and seconds, which only the content shows. These are what typical files come to.
_FILE_BYTES_PER_TOKEN = 20
_AUDIO_BYTES_PER_TOKEN = 1_000


def estimate(message: Message) -> int:
    """Estimate the tokens of a message: a quarter of its characters, and a guess for attachments; at least 1.

    Example:
        >>> from sideband.messages import UserMessage
        >>> estimate(UserMessage(content="hello, world"))
        3
    """
    characters = sum(_characters(part) for part in message.content)
    return max(1, -(-characters // CHARACTERS_PER_TOKEN))


def context_tokens(messages: Sequence[Message], *, trusted_from: int = 0, overhead: int = 0) -> int:
    """Estimate the number of tokens that a model would read.

    Args:
        messages: the conversation, oldest first.
        trusted_from: the index of the first message whose usage counts the current conversation. Older usage includes
            messages that the last compaction removed.
        overhead: the tokens of everything else that is sent: the system prompt and the tools. Used only if no message
            has a provider's count.

    Returns:
        The provider's count in the last answer plus an estimate for the messages after it.
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


def _characters(part: TextPart | Attachment | ThinkingPart | ToolCallPart) -> int:
    if isinstance(part, ImagePart | ImageUrlPart):
        return _IMAGE_TOKENS * CHARACTERS_PER_TOKEN
    if isinstance(part, FilePart | AudioPart):
        bytes_per_token = _FILE_BYTES_PER_TOKEN if isinstance(part, FilePart) else _AUDIO_BYTES_PER_TOKEN
        return len(part.data) * 3 // 4 * CHARACTERS_PER_TOKEN // bytes_per_token
    if isinstance(part, ToolCallPart):
        return len(part.name) + len(json.dumps(part.arguments, ensure_ascii=False))
    if isinstance(part, ThinkingPart) and part.redacted:
        return len(part.signature or "")
    return len(part.text)
