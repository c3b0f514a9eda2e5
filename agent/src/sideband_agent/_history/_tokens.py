"""Count the tokens of a conversation: the provider's last count, and an estimate for later messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import define, field
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

from ._visible_history import begins_with

CHARACTERS_PER_TOKEN = 4
_IMAGE_TOKENS = 1_200
# Providers count pages and seconds, which only the content shows. These are what typical files come to.
_FILE_BYTES_PER_TOKEN = 20
_AUDIO_BYTES_PER_TOKEN = 1_000
_encode = json.JSONEncoder(ensure_ascii=False).encode


def estimate(message: Message) -> int:
    """Estimate the tokens of a message: a quarter of its characters, and a guess for attachments; at least 1.

    Example:
        >>> from sideband.messages import UserMessage
        >>> estimate(UserMessage(content="hello, world"))
        3
    """
    characters = sum(_characters(part) for part in message.content)
    return max(1, -(-characters // CHARACTERS_PER_TOKEN))


@define(eq=False)
class TokenCount:
    """Estimates the number of tokens that a model would read. Each message of a conversation is estimated once.

    It keeps the messages that it was last asked for. They are reused as long as a conversation begins with the same
    objects.
    """

    _given: tuple[Message, ...] = field(default=(), init=False)
    # The estimate of the first n messages, for each n, and the indexes of those with a provider's count.
    _sums: list[int] = field(factory=lambda: [0], init=False)
    _counted: list[int] = field(factory=list, init=False)

    def of(self, messages: Sequence[Message], *, trusted_from: int = 0, overhead: int = 0) -> int:
        """Return the provider's count in the last answer plus an estimate for the messages after it.

        Args:
            messages: the conversation, oldest first.
            trusted_from: the index of the first message whose usage counts the current conversation. Older usage
                includes messages that the last compaction removed.
            overhead: the tokens of everything else that is sent: the system prompt and the tools. Used only if no
                message has a provider's count.
        """
        self._follow(messages)
        last = self._counted[-1] if self._counted else -1
        if last < max(trusted_from, 0):
            return overhead + self._sums[-1]
        return _counted(messages[last]) + self._sums[-1] - self._sums[last + 1]

    def _follow(self, messages: Sequence[Message]) -> None:
        if not begins_with(messages, self._given):
            self._given, self._sums, self._counted = (), [0], []
        for index in range(len(self._given), len(messages)):
            self._sums.append(self._sums[-1] + estimate(messages[index]))
            if _counted(messages[index]):
                self._counted.append(index)
        self._given = tuple(messages)


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
        return len(part.name) + len(_encode(part.arguments))
    if isinstance(part, ThinkingPart) and part.redacted:
        return len(part.signature or "")
    return len(part.text)
