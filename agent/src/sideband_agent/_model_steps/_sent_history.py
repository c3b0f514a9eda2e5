"""The messages as they are sent. A turn adds a few messages to those of the last one: only these are prepared."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import define, field
from sideband.messages import AssistantMessage, Message, ToolResultMessage

from .._field_names import share_field_names
from .._history import Pairing, begins_with, repair
from ._fitting import with_plain_names

_log = logging.getLogger("sideband.agent")


@define(eq=False)
class SentHistory:
    """Prepares the messages of one session for its model calls.

    It keeps the messages of the last call. They are reused as long as a conversation begins with the same objects.
    """

    _given: tuple[Message, ...] = field(default=(), init=False)
    _sent: list[Message] = field(factory=list, init=False)
    _pairing: Pairing = field(factory=Pairing, init=False)

    def prepare(self, messages: Sequence[Message], *, stored: int) -> tuple[Message, ...]:
        """Return the messages to send: repaired, with tool names that every provider accepts, and without metadata.

        Args:
            messages: the conversation, oldest first.
            stored: the number of messages that the next call sends too. Those after them are for this call only.
        """
        own = messages[stored:]
        if self._follow(messages[:stored]) and (not own or self._pairing.copy().are_whole(own)):
            return (*self._sent, *map(_sent, own))
        repaired, notices = repair(messages)
        for notice in notices:
            _log.info("a request was repaired: %s", notice)
        return tuple(map(_sent, repaired))

    def used_ids(self, messages: Sequence[Message]) -> set[str]:
        """Return the ids of the tool calls in a conversation."""
        if len(messages) == len(self._given) and begins_with(messages, self._given):
            return set(self._pairing.used)
        return {part.id for one in messages if isinstance(one, AssistantMessage) for part in one.tool_calls}

    def _follow(self, messages: Sequence[Message]) -> bool:
        """Prepare the messages that the last call did not send. Return ``False`` if the conversation needs a repair."""
        if not begins_with(messages, self._given):
            self._given, self._sent, self._pairing = (), [], Pairing()
        if added := messages[len(self._given) :]:
            pairing = self._pairing.copy()
            if not pairing.are_whole(added):
                return False
            self._given, self._pairing = tuple(messages), pairing
            self._sent.extend(map(_sent, added))
        return True


def _sent(message: Message) -> Message:
    """Return the message to send, without metadata: it is not for the model and may be large."""
    if isinstance(message, ToolResultMessage):
        if not message.metadata:
            return message
        message = message.model_copy(update={"metadata": {}})
        share_field_names(message)
        return message
    if not isinstance(message, AssistantMessage):
        return message
    if message.metadata is not None:
        message = message.model_copy(update={"metadata": None})
    return with_plain_names(message)
