"""What the user asked for and is still being worked on: a compaction never takes it away."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Message, UserMessage

__all__ = ["carried_indexes", "is_request"]

_ASKING = ("user", "agent")


def is_request(message: Message) -> bool:
    """Whether it is something that a user, or a parent, asks for."""
    return isinstance(message, UserMessage) and message.source in _ASKING


def carried_indexes(messages: Sequence[Message], cut: int) -> tuple[int, ...]:
    """Where the requests stand that models go on to see as they are, though what stands around them is summarised.

    Those are the request that is being worked on, and what the user added to it meanwhile.

    Args:
        messages: all messages of the session up to the compaction, oldest first.
        cut: the index of the first one that is kept.
    """
    found: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if is_request(message):
            found.append(index)
        elif found and message.role == "assistant" and not message.tool_calls:
            break  # the answer to the request before
    return tuple(index for index in reversed(found) if index < cut)
