"""What the user asked for and is still being worked on: a compaction never takes it away."""

from __future__ import annotations

from collections.abc import Sequence

from sideband.messages import Message, UserMessage

_ASKING = ("user", "agent")
_STANDING_FOR_OTHERS = ("summary", "branch")


def _is_request(message: Message) -> bool:
    """Whether it is something that a user, or a parent, asks for."""
    return isinstance(message, UserMessage) and message.source in _ASKING


def carried_indexes(messages: Sequence[Message], cut: int) -> tuple[int, ...]:
    """Where the requests stand that models go on to see as they are, though what stands around them is summarised.

    Those are what began the run that is being worked on, whoever said it, and what the user added to it meanwhile. If a
    plugin began it and the user said nothing since, the user's last request is among them too.

    Args:
        messages: all messages of the session up to the compaction, oldest first.
        cut: the index of the first one that is kept.
    """
    beginning = _beginning(messages)
    found = [index for index in range(beginning, len(messages)) if _is_request(messages[index])]
    if not found:
        found = [index for index in range(beginning) if _is_request(messages[index])][-1:]
    return tuple(index for index in sorted({*found, beginning}) if index < cut and _is_told(messages[index]))


def _beginning(messages: Sequence[Message]) -> int:
    """The index of what began the newest run: the first thing that was said after the answer to the run before."""
    beginning = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if _is_told(message):
            beginning = index
        elif beginning < len(messages) and message.role == "assistant" and not message.tool_calls:
            break
    return beginning


def _is_told(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.source not in _STANDING_FOR_OTHERS
