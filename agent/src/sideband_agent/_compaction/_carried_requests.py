"""Requests of the current run: a compaction never removes them."""

from __future__ import annotations

from collections.abc import Sequence

from sideband.messages import Message, UserMessage

_ASKING = ("user", "agent")
_SUMMARIES = ("summary", "branch")


def _is_request(message: Message) -> bool:
    """Return whether a message is a request of a user or of a parent agent."""
    return isinstance(message, UserMessage) and message.source in _ASKING


def carried_indexes(messages: Sequence[Message], cut: int) -> tuple[int, ...]:
    """Return the indexes of requests that models still see verbatim although the messages around them are summarized.

    These are the message that began the current run, whatever its source, and the user's messages since. If a plugin
    began the run and the user has sent nothing since, the user's last request is included.

    Args:
        messages: all messages of the session up to the compaction, oldest first.
        cut: the index of the first kept message.
    """
    beginning = _beginning(messages)
    found = [index for index in range(beginning, len(messages)) if _is_request(messages[index])]
    if not found:
        found = [index for index in range(beginning) if _is_request(messages[index])][-1:]
    return tuple(index for index in sorted({*found, beginning}) if index < cut and _is_input(messages[index]))


def _beginning(messages: Sequence[Message]) -> int:
    """Return the index of the message that began the newest run: the first one after the last final answer."""
    beginning = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if _is_input(message):
            beginning = index
        elif beginning < len(messages) and message.role == "assistant" and not message.tool_calls:
            break
    return beginning


def _is_input(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.source not in _SUMMARIES
